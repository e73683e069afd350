"""OpenAI's Responses API with a chain of ids; a result is sent under the id of an earlier call."""

import json


def stock(item: str) -> dict:
    return {"item": item, "pieces": {"bolt M6": 4100, "nut M6": 12}[item]}


def main() -> None:
    import openai

    client = openai.OpenAI()
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    tools = [{"type": "function", "name": "stock", "parameters": schema}]
    sent = [{"role": "user", "content": "Are bolts M6 and nuts M6 in stock, at least 100 of each?"}]
    first = None
    while True:
        reply = client.responses.create(model="gpt-5.1-mini", input=sent, tools=tools)
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return print(reply.output_text)
        for call in calls:
            first = first or call.call_id
            sent.append(
                {
                    "type": "function_call",
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                }
            )
            result = LAST.setdefault(first, stock(**json.loads(call.arguments)))  # keyed by the wrong id
            sent.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(result)}
            )


LAST = {}
MODEL = [
    ("stock", {"item": "bolt M6"}),
    ("stock", {"item": "nut M6"}),
    "Yes: 4100 bolts M6 and 4100 nuts M6 are in stock.",
]
LABEL = (
    "mixed up results",
    "the model is sent the result of the first call again as that of the second",
    "sent stock 2",
)

if __name__ == "__main__":
    main()
