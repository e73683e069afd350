"""Secrets and withheld content: what is replaced before anything is written.

Imports only the root modules.
"""
