"""A body as http.client reads it from its socket: the framing of chunks taken off, its end known."""

from __future__ import annotations

SIZE, DATA, AFTER, TRAILER, OVER = "size", "data", "after", "trailer", "over"
MAX_LINE = 65_536


class Transfer:
    """The state of one body: chunked, of a length, or up to the end of the connection."""

    def __init__(self, chunked: bool, length: int | None) -> None:
        self._state = SIZE if chunked else DATA
        self._chunked = chunked
        self._left = length
        self._line = b""
        self.to_the_end = not chunked and length is None
        if length == 0:
            self._state = OVER

    @property
    def is_over(self) -> bool:
        """True once the last byte of the body has been seen."""
        return self._state == OVER

    def add(self, data: bytes) -> bytes:
        """Take in bytes from the connection; returns those that are the body's."""
        if not self._chunked:
            return self._counted(data)
        found = []
        while data and self._state != OVER:
            if self._state == DATA:
                piece, data = data[: self._left], data[self._left :]
                found.append(self._counted(piece))
            else:
                end = data.find(b"\n") + 1
                self._line += data[: end or len(data)]
                data = data[end:] if end else b""
                if end:
                    self._end_of_line()
                elif len(self._line) > MAX_LINE:
                    raise ValueError("no end of a chunk's first line")
        return b"".join(found)

    def _counted(self, data: bytes) -> bytes:
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                self._state = AFTER if self._chunked else OVER
        return data

    def _end_of_line(self) -> None:
        line, self._line = self._line.strip(), b""
        if self._state == SIZE:
            self._left = int(line.partition(b";")[0], 16)
            self._state = DATA if self._left else TRAILER
        elif self._state == AFTER:
            self._state = SIZE
        elif not line:
            self._state = OVER
