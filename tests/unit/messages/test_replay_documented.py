"""Every finding of replay() is explained in the guide."""

from __future__ import annotations

import re
from pathlib import Path

import reenact
from reenact.messages.rebuild import HOLES

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "messages.md").read_text(encoding="utf-8")


def test_every_finding_is_in_the_guide() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", GUIDE.split("\n## Findings\n")[1], re.MULTILINE)
    folder = Path(reenact.__file__).parent / "messages"
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    reported = set(re.findall(r'(?:report|Finding)\(\s*"([a-z-]+)"', source))
    assert {"cut", "rebuilt"} <= reported
    assert reported == set(rows)
    assert set(rows[:5]) == set(HOLES)
