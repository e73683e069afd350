"""A graph of nodes whose retry sends an invitation twice."""

from kit import Agent

SENT = []


def invite(guest: str, event: str) -> dict:
    SENT.append(guest)
    return {"guest": guest, "state": "sent"}


class AtLeastOnce(Agent):
    def perform(self, call):
        value = super().perform(call)
        return value if value.get("id") else super().perform(call)  # an older API returned an id


MODEL = [
    [
        ("invite", {"guest": "noor@example.com", "event": "ev-5"}),
        ("invite", {"guest": "olaf@example.com", "event": "ev-5"}),
    ],
    "Noor and Olaf are invited to ev-5.",
]
LABEL = (
    "repeated side effect",
    "the loop takes a result without an id for a failure and sends each invitation twice",
    *[f"call invite {n}" for n in (1, 2, 3, 4)],
    *[f"result invite {n}" for n in (1, 2, 3, 4)],
)

if __name__ == "__main__":
    print(AtLeastOnce(invite).run("Invite noor@example.com and olaf@example.com to ev-5."))
    assert len(SENT) == 2, SENT
