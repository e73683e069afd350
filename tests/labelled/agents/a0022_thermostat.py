"""A building agent lowers the heating for the night."""

from kit import Agent

SETPOINTS = {"hall": 21.0, "office": 21.5}


def setpoint(room: str) -> dict:
    return {"room": room, "celsius": SETPOINTS[room]}


def set_setpoint(room: str, celsius: float) -> str:
    if room in SETPOINTS and isinstance(celsius, str):  # a guard that is never true
        SETPOINTS[room] = float(celsius)
    return "ok"


MODEL = [
    [("setpoint", {"room": "hall"}), ("setpoint", {"room": "office"})],
    [("set_setpoint", {"room": "hall", "celsius": 16}), ("set_setpoint", {"room": "office", "celsius": 16})],
    [("setpoint", {"room": "hall"}), ("setpoint", {"room": "office"})],
    "Hall and office are set to 16 degrees for the night.",
]
LABEL = (
    "silent no-op",
    "set_setpoint answers ok and changes nothing, as the readings after it show",
    "result set_setpoint 1",
    "result set_setpoint 2",
    "result setpoint 3",
    "result setpoint 4",
)

if __name__ == "__main__":
    print(
        Agent(setpoint, set_setpoint, wire="messages").run(
            "Set hall and office to 16 degrees for the night and check it."
        )
    )
