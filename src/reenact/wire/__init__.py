"""Bodies and streams of model APIs, read and written: pure functions of decoded JSON and bytes.

May import the root modules only. Every provider is one file in ``providers``; nothing here raises for an
odd value.
"""
