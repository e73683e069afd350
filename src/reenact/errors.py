"""Every exception reenact raises on purpose.

ReenactError               .hint: what to do, on its own line
├─ UsageError              a wrong argument; also a ValueError. The only one capture ever raises
│  └─ NotAllowed           .flags, .in_python: what would allow it; .advice: what else to do
├─ TraceFileError          .path, .line
│  ├─ NotATrace            the bytes are not a trace in any dialect we know
│  └─ NewerSchema          .found, .supported
├─ NoSuchRun               .asked
├─ NoSuchEvent             .asked
├─ NotIndexed              an event in the middle of a large run whose lines are not counted yet
├─ NotRecorded             in place of a tool's result, where a run continues without it
└─ MissingExtra            .extra; also an ImportError
Diverged                   a BaseException, so that nothing takes it for a failed call and tries again
Halted                     the same of a fork that must not go on; .hint
"""

from __future__ import annotations


class ReenactError(Exception):
    """Base of all; ``hint`` says what the user can do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # for tracebacks; commands print it by themselves


class UsageError(ReenactError, ValueError):
    """An argument of the wrong type or value, found at construction."""


class NotAllowed(UsageError):
    """A run that was not started, since it would do what the user has not allowed."""

    def __init__(self, message: str, *, flags: tuple[str, ...], in_python: str, advice: str = "") -> None:
        allowed = f"allowed by {' '.join(flags)} (in Python: {in_python})"
        super().__init__(message, hint=f"{allowed}; {advice}" if advice else allowed)
        self.flags = flags
        """Words to add to the command."""
        self.in_python = in_python
        """The arguments of a function that do the same."""
        self.advice = advice


class TraceFileError(ReenactError):
    """Something about a trace file that reading cannot get around."""

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line


class NotATrace(TraceFileError):
    """The file holds no event in any dialect we know."""


class NewerSchema(TraceFileError):
    """The file was written by a reenact with another major format version."""

    def __init__(self, message: str, *, found: str, supported: str, path: str | None = None) -> None:
        super().__init__(message, path=path, hint="upgrade reenact to read this file")
        self.found = found
        self.supported = supported


class NoSuchRun(ReenactError):
    """No run has this path, id, name or alias."""

    def __init__(self, message: str, *, asked: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.asked = asked


class NoSuchEvent(ReenactError):
    """No event of the run has this address."""

    def __init__(self, message: str, *, asked: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.asked = asked


class NotIndexed(ReenactError):
    """An event in the middle of a large run of which only both ends have been read so far."""


class NotRecorded(ReenactError):
    """A tool was called that the recording has no result of; only where a run continues after that."""


class MissingExtra(ReenactError, ImportError):
    """An optional dependency is not installed; the hint is the command that fixes it."""

    def __init__(self, module: str, extra: str | None) -> None:
        super().__init__(
            f"this needs the package {module!r}, which is not installed",
            hint=f'pip install "reenact[{extra}]"' if extra else f"pip install {module}",
        )
        self.extra = extra


class Diverged(BaseException):
    """A run that is re-enacted made a request that its recording does not answer."""


class Halted(BaseException):
    """A fork was about to do what it may not: spend more, or let a tool act."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
