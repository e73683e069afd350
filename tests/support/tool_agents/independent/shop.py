"""Shop assistant: every tool is a subclass of an abstract Tool with a run() method."""

from __future__ import annotations

import json
import os
import urllib.request
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Any

PLAN = (
    'PLAN [[["search_products", {"query": "lamp"}], ["search_products", {"query": "desk", "limit": 1}]], '
    '[["add_to_cart", {"sku": "L-1", "quantity": 2}]], '
    '[["add_to_cart", {"sku": "D-9", "quantity": 1}], ["apply_coupon", {"code": "SPRING"}]], '
    '[["checkout", {}]]]'
)


class OutOfStock(Exception):
    def __init__(self, sku: str, left: int):
        super().__init__(f"{sku}: only {left} left")
        self.sku = sku
        self.left = left


class Shop:
    def __init__(self) -> None:
        self.products = {
            "L-1": {"name": "Reading lamp", "price": Decimal("19.90"), "stock": 5},
            "L-2": {"name": "Lava lamp", "price": Decimal("35.00"), "stock": 1},
            "D-9": {"name": "Oak desk", "price": Decimal("240.00"), "stock": 0},
        }
        self.cart: dict[str, int] = {}
        self.discount = Decimal("0")


class Tool(ABC):
    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def spec(self) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    def log_effect(self) -> None:
        with open("effects.txt", "a") as f:
            f.write(self.name + "\n")

    @abstractmethod
    def run(self, **kwargs: Any) -> Any: ...


class SearchProducts(Tool):
    name = "search_products"
    description = "Full text search in the product names"
    parameters = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    }

    def run(self, query: str, limit: int = 10) -> list[dict[str, Any]]:
        self.log_effect()
        hits = [
            {"sku": sku, **p} for sku, p in self.shop.products.items() if query.lower() in p["name"].lower()
        ]
        return hits[:limit]


class AddToCart(Tool):
    name = "add_to_cart"
    description = "Put something into the cart"
    parameters = {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}},
        "required": ["sku", "quantity"],
    }

    def run(self, sku: str, quantity: int) -> dict[str, int]:
        self.log_effect()
        product = self.shop.products[sku]
        if product["stock"] < quantity:
            raise OutOfStock(sku, product["stock"])
        product["stock"] -= quantity
        self.shop.cart[sku] = self.shop.cart.get(sku, 0) + quantity
        return self.shop.cart


class ApplyCoupon(Tool):
    name = "apply_coupon"
    description = "Apply a coupon code"
    parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}

    def run(self, code: str) -> str:
        self.log_effect()
        self.shop.discount = {"SPRING": Decimal("0.10")}[code]
        return f"{self.shop.discount:.0%} off"


class Checkout(Tool):
    name = "checkout"
    description = "Pay for the cart"

    def run(self) -> Decimal:
        self.log_effect()
        total = sum(self.shop.products[s]["price"] * n for s, n in self.shop.cart.items())
        self.shop.cart.clear()
        return (total * (1 - self.shop.discount)).quantize(Decimal("0.01"))


class Agent:
    def __init__(self, tools: list[Tool]) -> None:
        self.tools = {t.name: t for t in tools}
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a shop assistant."}]

    def complete(self) -> dict[str, Any]:
        payload = {"model": "m", "messages": self.messages, "tools": [t.spec() for t in self.tools.values()]}
        req = urllib.request.Request(
            os.environ["MODEL_URL"] + "/v1/chat/completions",
            data=json.dumps(payload).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(req) as resp:
            return json.load(resp)["choices"][0]["message"]

    def call_tool(self, name: str, arguments: str) -> str:
        try:
            result = self.tools[name].run(**json.loads(arguments))
        except OutOfStock as e:
            return f"Sorry, out of stock: {e}"
        return json.dumps(result, default=str)

    def run(self, prompt: str) -> str:
        self.messages.append({"role": "user", "content": prompt})
        while True:
            message = self.complete()
            self.messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for tc in message["tool_calls"]:
                text = self.call_tool(tc["function"]["name"], tc["function"]["arguments"])
                print(f"[{tc['function']['name']}] {text}")
                self.messages.append({"role": "tool", "tool_call_id": tc["id"], "content": text})


if __name__ == "__main__":
    shop = Shop()
    agent = Agent([cls(shop) for cls in (SearchProducts, AddToCart, ApplyCoupon, Checkout)])
    print(agent.run(PLAN))
