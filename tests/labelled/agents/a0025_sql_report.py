"""A reporting agent whose model writes a query with quotes that break the JSON of its arguments."""

from kit import Agent


def run_sql(query: str) -> list:
    return []


MODEL = [
    {
        "turn": ["Counting the orders of the last week.", ("run_sql", {"query": ""})],
        "arguments": '{"query": "select count(*) from orders where note like "%gift%""}',
    }
]
LABEL = (
    "malformed arguments",
    "the arguments of run_sql are not valid JSON, and the loop dies of it",
    "response 1",
)

if __name__ == "__main__":
    print(Agent(run_sql).run("How many orders of last week were gifts?"))
