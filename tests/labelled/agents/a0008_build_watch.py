"""A release agent starts a build and waits for it."""

from kit import Agent

BUILDS = {}


def start_build(branch: str) -> dict:
    BUILDS["b-4471"] = branch
    return {"build": "b-4471"}


def build_status(build: str) -> dict:
    return {"build": build, "state": "queued", "position": 3}


def publish(build: str) -> str:
    return "published"


MODEL = [("start_build", {"branch": "release/4.2"}), *[("build_status", {"build": "b-4471"})] * 24]
LABEL = (
    "endless polling",
    "the build never leaves the queue, and the agent asks for its state until its turns are used up",
    *[f"result build_status {n}" for n in range(2, 25)],
    *[f"call build_status {n}" for n in range(2, 25)],
)

if __name__ == "__main__":
    agent = Agent(start_build, build_status, publish, wire="messages", turns=25)
    print(agent.run("Build release/4.2 and publish it when the build is green."))
