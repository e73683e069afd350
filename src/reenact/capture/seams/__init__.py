"""One file per library that carries model calls, and how they are found and patched.

A library is never imported before the agent imports it. Imports the other rooms of `capture`.
"""
