"""Provider wire formats, pure: what is in a request or an answer, whoever sent it."""
