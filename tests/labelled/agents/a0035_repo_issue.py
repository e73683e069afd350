"""A maintainer's bot closes issues that a release fixed, in another repository than it should."""

from kit import Agent


def fixed_in(release: str) -> list:
    return [{"issue": 214, "title": "Crash on empty config"}, {"issue": 220, "title": "Slow start"}]


def issue(repo: str, number: int) -> dict:
    titles = {"core/cli": {214: "Colours on Windows", 220: "Completion for fish"}}
    return {"repo": repo, "issue": number, "title": titles[repo][number], "state": "open"}


def close_issue(repo: str, number: int, comment: str) -> str:
    return "closed"


MODEL = [
    ("fixed_in", {"release": "engine 3.4.0"}),
    [("issue", {"repo": "core/cli", "number": 214}), ("issue", {"repo": "core/cli", "number": 220})],
    [
        ("close_issue", {"repo": "core/cli", "number": 214, "comment": "Fixed in 3.4.0."}),
        ("close_issue", {"repo": "core/cli", "number": 220, "comment": "Fixed in 3.4.0."}),
    ],
    "I closed 214 and 220 with a comment on release 3.4.0.",
]
LABEL = (
    "wrong entity",
    "the issues belong to core/engine; the model opens and closes those of the same numbers in core/cli",
    "call issue 1",
    "call issue 2",
    "result issue 1",
    "result issue 2",
    "call close_issue 1",
    "call close_issue 2",
)

if __name__ == "__main__":
    agent = Agent(
        fixed_in,
        issue,
        close_issue,
        wire="messages",
        system="Repositories: core/cli, core/engine, core/docs.",
    )
    print(agent.run("Close the issues of core/engine that release engine 3.4.0 fixed."))
