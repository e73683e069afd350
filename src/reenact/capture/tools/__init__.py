"""Tools recorded with no line changed: the functions behind tool uses are found, watched through their code
object, and their calls paired with the tool uses of responses. Loaded with the first tool use of a process.

Imports `capture.calls`, `capture.recorder` and the wrappers of `capture.front`.
"""
