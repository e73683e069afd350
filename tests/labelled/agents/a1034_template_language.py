"""An agent that writes templates: placeholders are its subject."""

from kit import Agent

TEMPLATES = {"welcome": "Hello {{ first_name }}, your plan is ${plan}. {unsubscribe_url}"}


def get_template(name: str) -> str:
    return TEMPLATES[name]


def save_template(name: str, text: str) -> str:
    TEMPLATES[name] = text
    return "saved"


MODEL = [
    ("get_template", {"name": "welcome"}),
    (
        "save_template",
        {"name": "welcome", "text": "Hi {{ first_name }}, your plan is {{ plan }}. {{ unsubscribe_url }}"},
    ),
    "The template uses {{ … }} for all three fields now: first_name, plan, unsubscribe_url.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(get_template, save_template, wire="messages").run(
            "Make the placeholders of the template welcome uniform."
        )
    )
