"""A studio agent starts a render job, polls it, and fetches the file."""

from kit import Agent

STATES = iter(["queued", "queued", "rendering 12 %", "rendering 47 %", "rendering 81 %", "done"])


def start_render(project: str, preset: str) -> dict:
    return {"job": "r-3391"}


def job_state(job: str) -> dict:
    return {"job": job, "state": next(STATES)}


def fetch(job: str) -> dict:
    return {"file": "harbour-4k.mp4", "mb": 812}


MODEL = [
    ("start_render", {"project": "harbour", "preset": "4k"}),
    *[("job_state", {"job": "r-3391"})] * 6,
    ("fetch", {"job": "r-3391"}),
    "The render is done: harbour-4k.mp4, 812 MB.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(start_render, job_state, fetch).run("Render the project harbour in 4k and give me the file."))
