"""A warehouse agent reorders parts that run low."""

from kit import Agent


def stock_level(sku: str) -> dict:
    """Return the pieces on hand as `on_hand`."""
    row = {"sku": sku, "qty_available": {"BRG-6204": 118, "SEAL-22": 640}[sku], "bin": "C4"}  # renamed in v3
    return {"sku": sku, "on_hand": row.get("on_hand", 0), "bin": row["bin"]}


def reorder(sku: str, pieces: int) -> dict:
    return {"sku": sku, "ordered": pieces, "cost_eur": round(pieces * 7.4, 2)}


MODEL = [
    [("stock_level", {"sku": "BRG-6204"}), ("stock_level", {"sku": "SEAL-22"})],
    [
        "Both parts have run out. Ordering the full lot of each.",
        ("reorder", {"sku": "BRG-6204", "pieces": 500}),
        ("reorder", {"sku": "SEAL-22", "pieces": 500}),
    ],
    "BRG-6204 and SEAL-22 were out of stock, so I ordered 500 of each for 7400.00 EUR in total.",
]
LABEL = (
    "schema mismatch",
    "the field was renamed, and stock_level falls back to 0 for every part",
    "result stock_level 1",
    "result stock_level 2",
)

if __name__ == "__main__":
    print(
        Agent(stock_level, reorder).run(
            "Reorder 500 of each of BRG-6204 and SEAL-22 where fewer than 100 are left."
        )
    )
