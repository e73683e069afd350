"""An exporter reads all pages before it counts."""

from kit import Agent

ROWS = [{"id": n, "state": "late" if n % 7 == 0 else "paid"} for n in range(1, 64)]


def invoices(page: int) -> dict:
    rows = ROWS[(page - 1) * 20 : page * 20]
    return {"rows": rows, "page": page, "next": page + 1 if page * 20 < len(ROWS) else None}


MODEL = [*[("invoices", {"page": n}) for n in range(1, 5)], "9 of 63 invoices are late."]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(invoices).run("How many invoices are late?"))
