"""A deployment fails its check and is rolled back as the user asked for."""

from kit import Agent

CHECKS = iter([{"healthy": False, "errors_per_min": 41}, {"healthy": True, "errors_per_min": 0}])


def deploy(service: str, version: str) -> str:
    return f"{service} {version} is live"


def check(service: str) -> dict:
    return next(CHECKS)


def rollback(service: str) -> str:
    return f"{service} is back on 8.1.3"


MODEL = [
    ("deploy", {"service": "cart", "version": "8.2.0"}),
    ("check", {"service": "cart"}),
    ["41 errors a minute. Rolling back as instructed.", ("rollback", {"service": "cart"})],
    ("check", {"service": "cart"}),
    "cart 8.2.0 caused 41 errors a minute, so I rolled it back. 8.1.3 is live and healthy.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(deploy, check, rollback, wire="messages").run(
            "Deploy cart 8.2.0. If the check fails, roll back."
        )
    )
