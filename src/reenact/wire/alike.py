"""Events that are like the one before but for the few letters they say: nearly all of a long answer's.

Used by stream.py, for speed: such a one need not be parsed, its letters are taken out of it.
"""

from __future__ import annotations

_PADDING = b'"obfuscation":"'
"""OpenAI's, of another length in every event; it means nothing."""
_FAR = 4_096
"""Bytes in which an event's letters have an end; one that has more of them is parsed."""


class Alike:
    """What stands before and after the letters of the latest event."""

    __slots__ = ("_ends", "_letters", "_padding", "head", "taken")

    def __init__(self) -> None:
        self.head = b""
        """Empty if nothing is known."""
        self.taken = 0
        """Events that were such."""

    def learn(self, block: bytes, name: str, letters: list[str]) -> None:
        """An event has said a piece more under this name, the last of ``letters``, and nothing else."""
        self.head = b""
        quoted, said = b'"%b"' % name.encode(), letters[-1].encode("utf-8", "replace")
        at = block.find(quoted + b":")
        begin = at + len(quoted) + (3 if block[at + len(quoted) + 1 : at + len(quoted) + 2] == b" " else 2)
        tail = block[begin + len(said) :]
        if at < 0 or block[begin - 1 :] != b'"%b%b' % (said, tail) or tail[:1] != b'"':
            return  # letters that are escaped
        if quoted in block[:at] or quoted in tail:  # which of them was it?
            return
        before, padded, padding = tail.partition(_PADDING)
        self._padding = before + padded if padded else b""
        self._ends = (padding[padding.find(b'"') :] if padded else tail) + b"\n\n"
        self.head, self._letters = block[:begin], letters

    def take(self, data: bytes, at: int) -> int:
        """Put the letters of such events where they belong; returns where the first other one begins."""
        head, ends, padding = self.head, self._ends, self._padding
        while data.startswith(head, at):
            begin = at + len(head)
            end = stop = data.find(padding or ends, begin, begin + _FAR)
            if padding and end >= 0:
                stop = data.find(ends, end + len(padding), end + _FAR)
                if b'"' in data[end + len(padding) : stop]:
                    break
            said = data[begin:end]
            if stop < 0 or b'"' in said or b"\\" in said:
                break
            try:
                letters = said.decode("utf-8")
            except UnicodeDecodeError:
                break
            if not letters.isprintable():  # not to be found in JSON as it is, a line feed for instance
                break
            self._letters.append(letters)
            self.taken += 1
            at = stop + len(ends)
        return at
