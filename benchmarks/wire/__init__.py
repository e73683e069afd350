"""Agents that call the scripted provider of ``tests/`` through real SDKs, recorded in every way there is."""
