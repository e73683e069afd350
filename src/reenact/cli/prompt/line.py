"""A line as typed -> its commands."""

from __future__ import annotations

_QUOTES = "\"'"


def split_commands(line: str) -> list[str]:
    """Return the commands between semicolons that are not in quotes; a quote without its pair is a letter.

    >>> split_commands('b text~"a;b"; c')
    ['b text~"a;b"', 'c']
    """
    commands, begin, quote, escaped = [], 0, "", False
    for at, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES and char in line[at + 1 :]:
            quote = char
        elif char == ";":
            commands.append(line[begin:at])
            begin = at + 1
    commands.append(line[begin:])
    return [command.strip() for command in commands if command.strip()]


def split_verb(command: str) -> tuple[str, str]:
    """Return the verb and what follows it.

    >>> split_verb("/hotel room"), split_verb("j  turn:3")
    (('/', 'hotel room'), ('j', 'turn:3'))
    """
    command = command.strip()
    if command[:1] in ("/", "?"):
        return command[0], command[1:]
    verb, _, argument = command.partition(" ")
    return verb, argument.strip()
