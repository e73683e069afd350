"""The prompt of `reenact debug`."""
