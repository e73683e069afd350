"""Secrets and withheld content: what is replaced before anything is written.

Imports the root modules, and from `capture` the guard, the import lock and the hooks of a fork.
"""
