"""Real captures for the tests: the VCR cassettes and wire files beside the repository.

The cassettes are YAML as one program writes it; this reads that much YAML, so that the tests need
nothing installed.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / ".." / "shared" / "samples"

_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s'"\[\]{}!|>#&*-][^'"#]*?|-[^\s'"][^'"]*?):(?:\s+|$)"""
)
_NUMBER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(x..|u....|U........|.)", re.S)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "e": "\x1b",
    "a": "\a",
    "b": "\b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}


def interactions(path: Path) -> list[dict]:
    return Yaml(path.read_text("utf-8")).document().get("interactions") or []


def json_body(message: dict) -> object:
    """The decoded JSON body of a recorded request or response; None if it is none."""
    if "parsed_body" in message:
        return message["parsed_body"]
    body = message.get("body")
    if isinstance(body, dict):
        body = body.get("string")
    try:
        return json.loads(body)
    except (TypeError, ValueError):
        return None


class Yaml:
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.at = 0

    def document(self) -> dict:
        return self.block(0)

    def block(self, indent: int) -> object:
        line = self.lines[self.at][indent:]
        if line == "-" or line.startswith("- "):
            return self.sequence(indent)
        return self.mapping(indent)

    def sequence(self, indent: int) -> list:
        found = []
        while (
            self.more() and self.indent() == indent and (self.lines[self.at][indent:] + " ").startswith("- ")
        ):
            line = self.lines[self.at]
            self.lines[self.at] = line[:indent] + " " + line[indent + 1 :]
            inner = self.indent()
            rest = self.lines[self.at][inner:]
            if rest.startswith("- ") or _KEY.match(rest):
                found.append(self.block(inner))
            else:
                found.append(self.value(rest, indent))
        return found

    def mapping(self, indent: int) -> dict:
        found = {}
        while self.more() and self.indent() == indent and (key := _KEY.match(self.lines[self.at][indent:])):
            name = key[1]
            if name[0] in "\"'":
                name = self.unquoted(name)
            found[name] = self.value(self.lines[self.at][indent + key.end() :], indent)
        return found

    def more(self) -> bool:
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        return self.at < len(self.lines)

    def indent(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def value(self, rest: str, indent: int) -> object:
        """The value that begins with ``rest`` on the current line, whose key or dash is at ``indent``."""
        rest = rest.strip(" ")
        self.at += 1
        if rest == "":
            if self.more() and (
                self.indent() > indent
                or (self.indent() == indent and self.lines[self.at][indent:].startswith("- "))
            ):
                return self.nested(indent)
            return None
        if rest.startswith("!!binary"):
            return base64.b64decode(self.literal("|", indent))
        if rest[0] in "|>":
            return self.literal(rest, indent)
        if rest[0] in "\"'":
            while not self.closed(rest):
                rest += "\n" + self.lines[self.at].strip(" ")
                self.at += 1
            return self.unquoted(rest)
        while self.at < len(self.lines) and self.lines[self.at].strip() and self.indent() > indent:
            rest += " " + self.lines[self.at].strip(" ")
            self.at += 1
        return self.plain(rest)

    def nested(self, indent: int) -> object:
        inner = self.indent()
        rest = self.lines[self.at][inner:]
        if rest.startswith("- ") or rest == "-" or _KEY.match(rest):
            return self.block(inner)
        return self.value(rest, indent)

    def literal(self, header: str, indent: int) -> str:
        taken = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self.indent() > indent):
            taken.append(self.lines[self.at])
            self.at += 1
        digits = re.search(r"[0-9]", header)
        first = next((line for line in taken if line.strip()), "")
        inner = indent + int(digits[0]) if digits else len(first) - len(first.lstrip(" "))
        text = "\n".join(line[inner:] for line in taken) + "\n"
        if header[0] == ">":
            text = self.folded(text)
        if "+" in header:
            return text
        return text.rstrip("\n") + ("" if "-" in header else "\n")

    @staticmethod
    def closed(text: str) -> bool:
        if text[0] == "'":
            return len(text) > 1 and bool(re.fullmatch(r"'(?:[^']|'')*'", text, re.S))
        return bool(re.fullmatch(r'"(?:[^"\\]|\\.)*"', text, re.S))

    def unquoted(self, text: str) -> str:
        inner = text[1:-1]
        if text[0] == "'":
            return self.folded(inner).replace("''", "'")
        inner = re.sub(
            r"(?<!\\)((?:\\\\)*)\\\n\n*", r"\1", inner
        )  # an escaped line end joins without a space
        return _ESCAPE.sub(lambda found: self.unescaped(found[1]), self.folded(inner))

    @staticmethod
    def folded(text: str) -> str:
        return re.sub(r"\n+", lambda found: "\n" * (len(found[0]) - 1) or " ", text)

    @staticmethod
    def unescaped(code: str) -> str:
        return chr(int(code[1:], 16)) if code[0] in "xuU" else _ESCAPES.get(code, code)

    @staticmethod
    def plain(text: str) -> object:
        if text in ("null", "~"):
            return None
        if text in ("true", "false"):
            return text == "true"
        if text in ("{}", "[]"):
            return {} if text == "{}" else []
        if _NUMBER.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text
