"""A legal assistant reads a contract, of which the loop keeps the first part only."""

from kit import Agent

CLAUSES = [f"§{n} " + ("The parties keep all terms confidential for two years. " * 3) for n in range(1, 30)]
CLAUSES.append("§30 The tenant may terminate with three months' notice; a fee of two monthly rents is due.")


def read_contract(id: str) -> str:
    return "\n".join(CLAUSES)


class Thrifty(Agent):
    def text(self, value):
        return super().text(value)[:2000]


MODEL = [
    ("read_contract", {"id": "lease-2024-17"}),
    "The contract has no clause on early termination, so the statutory notice applies and no fee is due.",
]
LABEL = (
    "cut result",
    "the contract is cut after 2000 characters before the model sees it, and the clause on termination is behind that",
    "sent read_contract 1",
    "result read_contract 1",
)

if __name__ == "__main__":
    print(
        Thrifty(read_contract, wire="openai").run(
            "Does lease-2024-17 allow early termination, and what does it cost?"
        )
    )
