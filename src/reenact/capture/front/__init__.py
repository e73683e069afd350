"""What an agent calls: Trace, StepLog, Tap, the decorators and their options.

Imports the other rooms of `capture`.
"""
