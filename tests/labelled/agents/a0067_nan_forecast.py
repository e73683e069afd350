"""A forecaster's tool returns NaN for a series with a gap."""

from kit import Agent


def forecast(store: str, days: int) -> dict:
    series = [120.0, 131.0, float("nan"), 128.0]
    return {"store": store, "mean": sum(series) / len(series), "days": days}


def order_milk(store: str, litres: int) -> str:
    return f"{litres} litres ordered for {store}"


MODEL = [
    ("forecast", {"store": "Alvalade", "days": 1}),
    ["No demand is forecast.", ("order_milk", {"store": "Alvalade", "litres": 0})],
    "I ordered no milk for Alvalade, since no demand is forecast.",
]
LABEL = (
    "bad data",
    "forecast returns NaN because of a gap in the series, and the model reads it as no demand",
    "result forecast 1",
)

if __name__ == "__main__":
    print(
        Agent(forecast, order_milk, wire="messages").run("Order tomorrow's milk for the store in Alvalade.")
    )
