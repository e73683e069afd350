"""A quoting agent computes totals itself."""

from kit import Agent


def list_price(article: str) -> dict:
    return {"article": article, "net_eur": {"pump P20": 1180.0, "hose 5 m": 64.5}[article]}


def save_quote(customer: str, net: float, vat: float, gross: float) -> dict:
    return {"quote": "Q-5510", "gross": gross}


MODEL = [
    [("list_price", {"article": "pump P20"}), ("list_price", {"article": "hose 5 m"})],
    [
        "2 × 1180.00 + 4 × 64.50 = 2618.00 net. With 23 % VAT (602.14) that is 3220.14 EUR.",
        ("save_quote", {"customer": "Aquasul", "net": 2618.0, "vat": 602.14, "gross": 3220.14}),
    ],
    "Quote Q-5510 for Aquasul: 2618.00 EUR net, 602.14 EUR VAT, 3220.14 EUR in total.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(list_price, save_quote).run(
            "Quote two pumps P20 and four hoses of 5 m to Aquasul, with 23 % VAT."
        )
    )
