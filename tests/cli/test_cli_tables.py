"""Tables on a terminal: no figure is cut, no line is too long, with colour and without."""

from __future__ import annotations

import io
import re

import pytest

from reenact.cli.output import Output

HEAD = ["model", ">runs", ">calls", ">in", ">cost", ">P50"]
ROWS = [
    [("claude-sonnet-4-5", "bold"), ("1", ""), ("2", ""), ("3,600", ""), ("$0.0126", ""), ("9.1 ms", "")],
    [("gpt-5-mini", "bold"), ("12", ""), ("2", ""), ("320", ""), ("$0.0002", ""), ("47 µs", "")],
]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def drawn(monkeypatch, width, rows=ROWS, *, colour, less=("runs", "in", "P50")):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "" if colour else "1")
    stream = Terminal()
    Output(stream, stream).table(HEAD, rows, flexible=0, less=less)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    return [line.rstrip() for line in plain.splitlines() if line.strip()]


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("width", range(40, 81, 4))
def test_no_figure_is_cut_and_no_line_too_long(monkeypatch, width, colour):
    lines = drawn(monkeypatch, width, colour=colour)
    assert max(map(len, lines)) <= width, "\n".join(lines)
    head = lines[0].split()
    assert head[-1] in ("P50", "cost") and "cost" in head
    for line in (line for line in lines if "─" not in line):
        assert "…" not in line[18:], "\n".join(lines)
    assert any("$0.0126" in line for line in lines) and any("$0.0002" in line for line in lines)


def test_what_gives_way_is_left_out_in_turn(monkeypatch):
    wide, narrow = (drawn(monkeypatch, width, colour=False)[0].split() for width in (80, 40))
    assert wide == ["model", "runs", "calls", "in", "cost", "P50"]
    assert narrow == ["model", "calls", "cost", "P50"]


def test_figures_stand_right_whatever_their_letters(monkeypatch):
    _, first, second = drawn(monkeypatch, 80, colour=False)
    assert first.endswith("9.1 ms") and second.endswith(" 47 µs") and len(first) == len(second)


def test_a_row_that_runs_on_keeps_its_text_where_columns_are_left_out(monkeypatch):
    rows = [*ROWS, [("notes.txt", ""), ("no line of it is a JSON object", "dim")]]
    lines = drawn(monkeypatch, 40, rows, colour=False)
    assert lines[-1].startswith("notes.txt") and lines[-1].endswith("no line of it is a JS…")
