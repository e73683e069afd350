"""Asking a recording: filters, causes, context, state, and stepping through it both ways."""
