"""A recorded run executed again: matching, replay, fork, edits.

One flow: ``launch`` starts an agent and is its parent, ``rerun`` answers it from its recording and reports,
``forks`` lets it go live at a cut, ``experiment`` compares many forks. Imports `capture`, `recording`,
`messages`, `supervise` and `money`.
"""
