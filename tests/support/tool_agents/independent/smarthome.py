"""Home automation: devices register themselves through __init_subclass__, tools are callable instances."""

import contextlib
import json
import os
import urllib.request


class HomeTool:
    registry = {}
    args = {}

    def __init_subclass__(cls, tool=None, **kw):
        super().__init_subclass__(**kw)
        if tool:
            cls.tool = tool
            HomeTool.registry[tool] = cls()

    def __call__(self, arguments):
        raise NotImplementedError

    @property
    def definition(self):
        return {
            "type": "function",
            "function": {
                "name": self.tool,
                "parameters": {
                    "type": "object",
                    "properties": {k: {"type": v} for k, v in self.args.items()},
                    "required": list(self.args),
                },
            },
        }

    @contextlib.contextmanager
    def powered(self, device):
        """Wake the device, remember the effect, put it back to sleep whatever happens."""
        HOUSE["awake"].append(device)
        with open("effects.txt", "a") as f:
            f.write(self.tool + "\n")
        try:
            yield HOUSE["devices"][device]
        finally:
            HOUSE["awake"].remove(device)


HOUSE = {
    "awake": [],
    "devices": {
        "kitchen": {"on": False, "dim": 100},
        "hall": {"on": True, "dim": 40},
        "thermostat": {"target": 19.5, "measured": 18.0},
        "front_door": {"locked": False},
    },
}


class Switch(HomeTool, tool="switch_light"):
    args = {"room": "string", "on": "boolean"}

    def __call__(self, arguments):
        room = arguments.pop("room")
        with self.powered(room) as light:
            light.update(arguments)
            return f"{room} is {'on' if light['on'] else 'off'}"


class Dim(HomeTool, tool="dim_light"):
    args = {"room": "string", "percent": "integer"}

    def __call__(self, arguments):
        with self.powered(arguments["room"]) as light:
            if not 0 <= arguments["percent"] <= 100:
                raise ValueError("percent must be within 0..100, not %d" % arguments["percent"])
            light["dim"] = arguments["percent"]
            return "dimmed to %d%%" % light["dim"]


class Thermostat(HomeTool, tool="set_temperature"):
    args = {"celsius": "number"}
    limit = 23

    def __call__(self, arguments):
        with self.powered("thermostat") as t:
            t["target"] = min(float(arguments["celsius"]), self.limit)
            return dict(t, heating=t["target"] > t["measured"])


class Lock(HomeTool, tool="lock_door"):
    args = {"door": "string"}

    def __call__(self, arguments):
        with self.powered(arguments["door"]) as door:
            was, door["locked"] = door["locked"], True
            return "was already locked" if was else "locked"


class Model:
    def __init__(self, tools):
        self.tools = tools
        self.log = []

    def say(self, *messages):
        self.log.extend(messages)
        data = json.dumps({"model": "m", "messages": self.log, "tools": self.tools}).encode()
        r = urllib.request.Request(
            os.environ["MODEL_URL"] + "/v1/chat/completions", data, {"Content-Type": "application/json"}
        )
        with contextlib.closing(urllib.request.urlopen(r)) as answer:
            self.log.append(json.load(answer)["choices"][0]["message"])
        return self.log[-1]


def run_tool(call):
    f = call["function"]
    tool = HomeTool.registry[f["name"]]
    try:
        result = tool(json.loads(f["arguments"] or "{}"))
    except KeyError as e:
        result = f"unknown device {e}"
    except ValueError as e:
        result = f"bad value: {e}"
    print(f"{f['name']:16}{result}")
    return {
        "role": "tool",
        "tool_call_id": call["id"],
        "content": result if isinstance(result, str) else json.dumps(result),
    }


GOOD_NIGHT = "PLAN " + json.dumps(
    [
        [
            ["switch_light", {"room": "hall", "on": False}],
            ["switch_light", {"room": "kitchen", "on": True}],
            ["dim_light", {"room": "kitchen", "percent": 15}],
        ],
        [["dim_light", {"room": "kitchen", "percent": 150}], ["lock_door", {"door": "garage"}]],
        [["lock_door", {"door": "front_door"}]],
        [["set_temperature", {"celsius": 25}]],
    ]
)

model = Model([t.definition for t in HomeTool.registry.values()])
msg = model.say({"role": "user", "content": GOOD_NIGHT})
while calls := msg.get("tool_calls"):
    msg = model.say(*map(run_tool, calls))
print(msg["content"])
print(json.dumps(HOUSE, sort_keys=True))
