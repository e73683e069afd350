"""The second article's loop at the keyboard."""

import json

from reenact import Debugger

session = Debugger.load("runs/run-20260524.jsonl").step_session()

while True:
    event = session.next()
    if event is None:
        print("End of trace.")
        break
    print(f"[{event.index}] {event.event_type} | {event.summary()}")
    cmd = input("(n)ext / (j)ump N / (i)nspect / (q)uit > ").strip()
    if cmd == "q":
        break
    elif cmd.startswith("j "):
        session.jump(int(cmd.split()[1]))
    elif cmd == "i":
        print(json.dumps(event.payload, indent=2))
