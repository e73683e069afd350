"""The prompt of ``reenact debug``: verbs over the debugger's engine, as text or as JSON lines."""
