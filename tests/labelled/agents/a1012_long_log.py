"""A log reader shortens a long log in the middle, where nothing of interest is."""

from kit import Agent

LOG = (
    "\n".join(f"10:{n // 60:02d}:{n % 60:02d} GET /health 200" for n in range(2400))
    + "\n10:41:07 disk /data 97 % full"
)


def read_log(host: str) -> str:
    return LOG


class Short(Agent):
    def text(self, value):
        text = super().text(value)
        return (
            text
            if len(text) < 4000
            else f"{text[:1500]}\n[… {len(text) - 3000} characters left out …]\n{text[-1500:]}"
        )


MODEL = [
    ("read_log", {"host": "web-3"}),
    "The last line is the one that matters: /data is 97 % full. The rest are health checks.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Short(read_log, wire="messages").run("Why did web-3 page me at 10:41?"))
