"""What the tests share: the scripted provider, commands in forked processes, recorded runs and tables."""
