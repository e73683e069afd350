"""`python -m tests.labelled FOLDER [ID …]` records the labelled agents; one JSON object per run on stdout."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from labelled.record import record, scenarios

if len(sys.argv) < 2:
    sys.exit(__doc__)
for run in record(Path(sys.argv[1]), scenarios(sys.argv[2:])):
    print(json.dumps({"path": str(run.path), "exit": run.exit, **dataclasses.asdict(run.label)}), flush=True)
