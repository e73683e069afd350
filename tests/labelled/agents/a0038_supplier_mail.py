"""A purchasing agent writes to an address that it made up."""

from kit import Agent


def supplier(name: str) -> dict:
    return {
        "name": "Kovács Fittings Kft.",
        "city": "Győr",
        "contact": "Éva Kovács",
        "phone": "+36 96 555 014",
    }


def send_mail(to: str, subject: str, body: str) -> str:
    return "accepted for delivery"


MODEL = [
    ("supplier", {"name": "Kovács"}),
    (
        "send_mail",
        {
            "to": "eva.kovacs@kovacsfittings.example",
            "subject": "Inquiry",
            "body": "Please quote 400 elbows DN25.",
        },
    ),
    "I asked Éva Kovács for a quote on 400 elbows DN25.",
]
LABEL = (
    "invented argument",
    "the supplier's record has no mail address; the model makes one up from the name",
    "call send_mail 1",
)

if __name__ == "__main__":
    print(
        Agent(supplier, send_mail, wire="openai").run("Ask Kovács for a quote on 400 elbows DN25, by mail.")
    )
