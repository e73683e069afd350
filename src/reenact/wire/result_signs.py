"""What a tool's result says of itself: that it failed, that it is empty, that it is not all.

Tools report a failure in many ways: as a text that begins like an error, as an object with ``error`` in it,
as a status. Only the beginning of a text is looked at: pages and files that speak of errors are fine results.
Pure functions; none raises for an odd value.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .json_values import as_json, mapping, string
from .results import result_text

_LOOKED_AT = 400
"""Characters of a text that are looked at from either end."""

_MAX_TEXT = 1 << 20

_BEGINS = re.compile(
    r"""[\s"'({<\[❌⚠️✗!*#:-]*
    (?: (?:tool\s|internal\s|server\s|http\s|api\s|database\s|connection\s)*
        (?:error|exception|failure|failed|fatal|panic)\b
      | [A-Z]\w*(?:Error|Exception)\b
      | traceback\ \(most\ recent
      | (?:access|permission|request)\s(?:is\s|was\s)?(?:denied|refused|rejected)
      | unauthori[sz]ed | forbidden | not\sfound\b | bad\s(?:request|gateway) | too\smany\srequests
      | (?:operation|request|connection|query|call|read)?\s?timed?[\s-]?out
      | (?:could|can|did)(?:\s?not|n't)\s | unable\sto\s | invalid\s | rate\slimit
      | (?:http[\s/]?(?:1\.1\s)?|status(?:\scode)?:?\s)?[45]\d\d\s(?:[a-z]+\s)*
        (?:error|not\sfound|unavailable|gateway|forbidden|unauthori[sz]ed|bad\srequest|too\smany|timeout)
      | an?\s(?:unexpected\s|internal\s)?(?:error|exception)\s
      | no\ssuch\s | service\s(?:is\s)?(?:temporarily\s)?unavailable
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: status| code)|return ?code)[\s:=]*(-?[1-9]\d*)\b", re.IGNORECASE
)
_TRACEBACK = "Traceback (most recent call last)"
_FAILED_WORDS = frozenset(
    "error errors failed failure fail denied rejected refused timeout timed_out unavailable "
    "not_found exception declined aborted invalid unauthorized forbidden".split()
)
_STATES = ("status", "state", "result", "outcome", "code", "type")
_NOTHING = re.compile(
    r"""\W*(?:null|none|nil|n/?a|nan|undefined|empty|\[\]|\{\}|nothing(?:\sfound)?
    |(?:no|0|zero)\s(?:\w+\s){0,3}?(?:results?|match(?:es)?|rows?|records?|entries|items?|data|documents?|hits?|files?)
     (?:\s(?:were\s|was\s)?(?:found|returned|available|match\w*))?(?:\s(?:for|in|with)\s.{0,80})?)?\W*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_REST = re.compile(
    r"\[?(?:output |result |response |text )?(?:was )?truncated\b|\bshowing (?:only )?(?:the )?(?:first|"
    r"rows? 1|1)\b.{0,20}\bof\b|\bpage 1 (?:of|/) ?(?:[2-9]|\d\d)|\b\d[\d,]* more (?:rows|results|items|"
    r"lines|entries|records)\b|\bhas_more\W+true",
    re.IGNORECASE,
)
_MORE = frozenset(
    ("has_more", "hasMore", "truncated", "is_truncated", "isTruncated", "incomplete", "partial", "more")
)
_NEXT = frozenset(
    (
        "next_page",
        "nextPage",
        "next_cursor",
        "nextCursor",
        "next_page_token",
        "nextPageToken",
        "next_token",
        "NextToken",
    )
)
_PAGES = ("pages", "total_pages", "totalPages", "page_count", "pageCount", "last_page")
_TOTALS = ("total", "total_count", "totalCount", "total_results", "totalResults", "num_found", "numFound")


def value_of(result: Any) -> Any:
    """Return a result as data where it is the text of data."""
    if not isinstance(result, str):
        text = result_text(result)
        return value_of(text) if isinstance(result, list) and text != as_json(result) else result
    if len(result) > _MAX_TEXT or result.lstrip()[:1] not in ("{", "["):
        return result
    try:
        return json.loads(result)
    except (ValueError, RecursionError):
        return result


def failure_in(value: Any) -> str | None:
    """Return the words with which a result says that the tool failed; None if it does not say so.

    >>> failure_in("Error: no such user"), failure_in({"ok": False, "reason": "locked"})
    ('Error: no such user', '{"ok": false, "reason": "locked"}')
    >>> failure_in("the error rate is 2 %"), failure_in({"error": None, "rows": [1]})
    (None, None)
    """
    if isinstance(value, str):
        return _failure_in_text(value)
    item = mapping(value)
    for name in ("error", "errors", "exception", "error_message", "errorMessage", "err"):
        found = item.get(name)
        if found and not isinstance(found, int | float):
            return (
                as_json(value)
                if len(item) < 4
                else f"{name}: {found if isinstance(found, str) else as_json(found)}"
            )
        if found is True:
            return as_json(value)
    is_failure = (
        any(item.get(name) is True for name in ("isError", "is_error", "failed"))
        or any(item.get(name) is False for name in ("ok", "success", "succeeded", "successful"))
        or any(_is_failed(item.get(name)) for name in _STATES)
        or any(_is_http_failure(item.get(name)) for name in ("status", "status_code", "statusCode", "code"))
        or any(_is_nonzero(item.get(name)) for name in ("exit_code", "exitCode", "returncode", "return_code"))
    )
    return as_json(value) if is_failure else None


def _failure_in_text(text: str) -> str | None:
    head = text[:_LOOKED_AT]
    if _BEGINS.match(head):
        return text
    if _TRACEBACK in text[:_MAX_TEXT] or _EXIT.search(head) or _EXIT.search(text[-_LOOKED_AT:]):
        return text
    return None


def _is_failed(state: object) -> bool:
    return isinstance(state, str) and state.lower().replace(" ", "_") in _FAILED_WORDS


def _is_http_failure(code: object) -> bool:
    return isinstance(code, int) and 400 <= code < 600


def _is_nonzero(code: object) -> bool:
    return isinstance(code, int) and code != 0


def is_empty(value: Any) -> bool:
    """True if a result holds nothing: no text, no rows, or words for that.

    >>> is_empty([]), is_empty("No results found."), is_empty({"rows": [], "count": 0}), is_empty(0)
    (True, True, True, False)
    """
    if value is None or isinstance(value, str):
        return value is None or (len(value) < _LOOKED_AT and _NOTHING.match(value) is not None)
    if isinstance(value, list):
        return not value or all(string(mapping(each).get("text")) == "" for each in value)
    if not isinstance(value, dict):
        return False
    if not any(isinstance(each, list | dict) for each in value.values()):
        return all(each is None for each in value.values())
    held = [each for each in value.values() if each is not None and not isinstance(each, int | float)]
    return not any(held) and len(value) <= 6


def rest_of(value: Any) -> str | None:
    """Return the words with which a result says that it is not all; None if it does not say so.

    >>> rest_of({"rows": [1, 2], "total": 40}), rest_of({"rows": [1], "has_more": True})
    ('total: 40', 'has_more: true')
    """
    if isinstance(value, str):
        for text in (value[:_LOOKED_AT], value[-_LOOKED_AT:]):
            if found := _REST.search(text):
                return " ".join(text[max(0, found.start() - 20) : found.end() + 40].split())
        return None
    item = mapping(value)
    for name, each in item.items():
        if (name in _MORE and each is True) or (name in _NEXT and each not in (None, "", False)):
            return f"{name}: {as_json(each)}"
    page, pages = item.get("page"), next((item[name] for name in _PAGES if name in item), None)
    if isinstance(page, int) and isinstance(pages, int) and page < pages:
        return f"page {page} of {pages}"
    total = next((item[name] for name in _TOTALS if isinstance(item.get(name), int)), None)
    sizes = [len(each) for each in item.values() if isinstance(each, list)]
    name = next((name for name in _TOTALS if name in item), "")
    return f"{name}: {total}" if total is not None and len(sizes) == 1 and 0 < sizes[0] < total else None
