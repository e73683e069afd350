"""An agent with a registry of decorated tools, where two have the same name."""

import json

from kit import post

REGISTRY = {}


def tool(name):
    def decorate(function):
        REGISTRY[name] = function
        return function

    return decorate


@tool("balance")
def account_balance(account: str) -> dict:
    return {"account": account, "eur": 2310.55}


@tool("balance")
def points_balance(account: str) -> dict:
    return {"account": account, "balance": 48}


def main() -> None:
    parameters = {"type": "object", "properties": {"account": {"type": "string"}}}
    function = {
        "name": "balance",
        "description": "The balance of an account in EUR",
        "parameters": parameters,
    }
    messages = [{"role": "user", "content": "Can I pay 300 EUR from account 7712?"}]
    while True:
        body = {
            "model": "gpt-5.1-mini",
            "messages": messages,
            "tools": [{"type": "function", "function": function}],
        }
        message = post("/v1/chat/completions", body)["choices"][0]["message"]
        messages.append(message)
        if "tool_calls" not in message:
            break
        for call in message["tool_calls"]:
            value = REGISTRY[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(value)})
    print(message["content"])


MODEL = [("balance", {"account": "7712"}), "No, account 7712 has a balance of 48 EUR only."]
LABEL = (
    "wrong entity",
    "a second tool of the same name replaced the first, and the balance is one of loyalty points",
    "result balance 1",
)

if __name__ == "__main__":
    main()
