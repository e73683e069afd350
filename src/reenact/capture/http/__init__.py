"""One HTTP call as every library reports it: request, response body, headers.

Imports `capture.calls`, `capture.recorder` and `wire`.
"""
