"""The prompt of `reenact debug`. Imports `debugger` and `cli.view`."""
