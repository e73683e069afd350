"""A marketing agent writes a mail from a template."""

import string

from kit import Agent

TEMPLATE = string.Template(
    "You write welcome mails for $product.\nThe reader is ${first_name}, who signed up for the ${plan} plan.\n"
    "Mention the trial of ${trial_days} days."
)


def send(to: str, subject: str, body: str) -> str:
    return "250 2.0.0 OK queued as 7F1A2"


MODEL = [
    (
        "send",
        {
            "to": "ines@example.com",
            "subject": "Welcome to Tidewater",
            "body": "Hello ${first_name},\n\nwelcome to Tidewater! Your team plan starts with a free trial of 14 days.",
        },
    ),
    "The welcome mail is sent.",
]
LABEL = (
    "unfilled placeholder",
    "the prompt's template is filled without a first name, and the placeholder reaches the reader",
    "request 1",
    "call send 1",
)

if __name__ == "__main__":
    row = {"email": "ines@example.com", "plan": "team", "firstname": "Inês"}
    system = TEMPLATE.safe_substitute(row, product="Tidewater", trial_days=14)
    print(Agent(send, system=system).run(f"Write to {row['email']}."))
