"""A recorded run made into a test: what it is to assert, its text, and the recording that answers it."""
