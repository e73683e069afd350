"""Two agents edit one configuration: each writes the whole file."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from kit import Agent

FILE = {"text": "replicas: 2\nmemory: 512Mi\n"}
TOGETHER = Barrier(2)


def read_config() -> str:
    text = FILE["text"]
    TOGETHER.wait(10)
    return text


def write_config(text: str) -> str:
    TOGETHER.wait(10)
    FILE["text"] = text
    return "written"


def editor(task: str) -> str:
    return Agent(read_config, write_config, system="You edit the deployment file.").run(task)


MODEL = {
    "Set replicas": [
        ("read_config", {}),
        ("write_config", {"text": "replicas: 6\nmemory: 512Mi\n"}),
        "replicas is 6 now.",
    ],
    "Set memory": [
        ("read_config", {}),
        ("write_config", {"text": "replicas: 2\nmemory: 2Gi\n"}),
        "memory is 2Gi now.",
    ],
}
LABEL = (
    "overwritten",
    "both agents read the file before either writes it, so that one change is lost",
    "call write_config 1",
    "call write_config 2",
    "result write_config 1",
    "result write_config 2",
)

if __name__ == "__main__":
    with ThreadPoolExecutor(2) as pool:
        print(list(pool.map(editor, ["Set replicas to 6.", "Set memory to 2Gi."])))
    assert "replicas: 6" in FILE["text"] and "2Gi" in FILE["text"], FILE["text"]
