#!/usr/bin/env python3
"""Ask questions about a small sales database. Public methods of Desk are the tools (found via getattr)."""

import http.client
import inspect
import json
import os
import sqlite3
import typing
from urllib.parse import urlsplit

QUESTION = """PLAN [
 [["tables", {}]],
 [["describe", {"table": "sales"}], ["describe", {"table": "customers"}]],
 [["query", {"sql": "SELECT region, SUM(amount) AS total FROM sales GROUP BY region ORDER BY region"}],
  ["query", {"sql": "SELEC * FROM sales"}]],
 [["execute", {"sql": "UPDATE sales SET amount = amount + ? WHERE region = ?", "params": [5, "north"]}],
  ["execute", {"sql": "DROP TABLE sales"}]],
 [["query", {"sql": "SELECT id, amount FROM sales WHERE region = 'north'", "max_rows": 1}]]
]"""


class Desk:
    def __init__(self):
        self._db = sqlite3.connect(":memory:")
        self._db.row_factory = sqlite3.Row
        self._db.executescript("""
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE sales (id INTEGER PRIMARY KEY, customer INTEGER, region TEXT, amount REAL);
            INSERT INTO customers VALUES (1, 'Acme'), (2, 'Globex');
            INSERT INTO sales VALUES (1, 1, 'north', 10.5), (2, 2, 'south', 20), (3, 1, 'north', 4.5);
        """)

    def _note(self, what):
        with open("effects.txt", "a") as fh:
            fh.write(what + "\n")

    def tables(self) -> list:
        """List the tables."""
        self._note("tables")
        return [
            r["name"]
            for r in self._db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY 1")
        ]

    def describe(self, table: str) -> list:
        """Columns of a table."""
        self._note("describe")
        return [(r["name"], r["type"]) for r in self._db.execute(f"PRAGMA table_info({table})")]

    def query(self, sql: str, max_rows: int = 50) -> list:
        """Run a SELECT."""
        self._note("query")
        return self._db.execute(sql).fetchmany(max_rows)

    def execute(self, sql: str, params: list = None) -> int:
        """Run INSERT or UPDATE, returns the number of rows changed."""
        self._note("execute")
        if sql.split()[0].upper() not in ("INSERT", "UPDATE"):
            raise PermissionError(f"not allowed: {sql.split()[0]}")
        with self._db:
            return self._db.execute(sql, params or []).rowcount


def schema_of(obj):
    types = {str: "string", int: "integer", list: "array"}
    for name, method in inspect.getmembers(obj, inspect.ismethod):
        if name.startswith("_"):
            continue
        hints = typing.get_type_hints(method)
        sig = inspect.signature(method)
        yield {
            "type": "function",
            "function": {
                "name": name,
                "description": inspect.getdoc(method),
                "parameters": {
                    "type": "object",
                    "properties": {p: {"type": types[hints[p]]} for p in sig.parameters},
                    "required": [p for p, v in sig.parameters.items() if v.default is v.empty],
                },
            },
        }


def chat(messages, tools):
    url = urlsplit(os.environ["MODEL_URL"])
    conn = http.client.HTTPConnection(url.hostname, url.port)
    try:
        conn.request(
            "POST",
            url.path.rstrip("/") + "/v1/chat/completions",
            json.dumps(dict(model="m", messages=messages, tools=tools)),
            {"Content-Type": "application/json"},
        )
        response = conn.getresponse()
        assert response.status == 200, response.status
        return json.loads(response.read())["choices"][0]["message"]
    finally:
        conn.close()


def as_text(value):
    if isinstance(value, list):
        return "\n".join(
            " | ".join(str(c) for c in row) if not isinstance(row, str) else row for row in value
        )
    return str(value)


def main():
    desk = Desk()
    tools = list(schema_of(desk))
    messages = [
        {"role": "system", "content": "You are an SQL analyst."},
        {"role": "user", "content": QUESTION},
    ]
    for _ in range(20):
        answer = chat(messages, tools)
        messages.append(answer)
        if not answer.get("tool_calls"):
            print("ANSWER:", answer["content"])
            return
        for call in answer["tool_calls"]:
            name, args = call["function"]["name"], json.loads(call["function"]["arguments"])
            print(">>", name, args)
            try:
                content = as_text(getattr(desk, name)(**args))
            except (sqlite3.Error, PermissionError, AttributeError) as e:
                content = "ERROR " + type(e).__name__ + ": " + str(e)
            print(content)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    raise SystemExit("too many turns")


if __name__ == "__main__":
    main()
