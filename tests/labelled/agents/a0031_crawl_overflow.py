"""A crawler puts whole pages into its context until the provider refuses."""

from kit import Agent

PAGES = {f"/docs/{n}": f"Page {n}. " + "lorem ipsum dolor sit amet " * 900 for n in range(1, 6)}


def fetch(path: str) -> str:
    return PAGES[path]


MODEL = [*[("fetch", {"path": f"/docs/{n}"}) for n in range(1, 6)], {"status": 400}]
LABEL = (
    "context overflow",
    "whole pages are kept in the context until the provider refuses the request as too long",
    "request 6",
    *[f"result fetch {n}" for n in range(1, 6)],
)

if __name__ == "__main__":
    print(Agent(fetch).run("Read /docs/1 to /docs/5 and list the options they describe."))
