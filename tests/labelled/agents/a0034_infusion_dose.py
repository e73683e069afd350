"""A ward assistant computes a dose by weight."""

from kit import Agent


def patient(id: str) -> dict:
    return {"id": id, "age": 9, "weight": 68, "allergies": []}  # the scale of this ward shows pounds


def guideline(drug: str) -> dict:
    return {"drug": drug, "dose_mg_per_kg": 15, "max_single_mg": 1000}


def prescribe(patient: str, drug: str, mg: int) -> dict:
    return {"state": "rejected by pharmacy", "reason": "1000 mg is twice the usual dose at this age"}


MODEL = [
    [("patient", {"id": "W2-14"}), ("guideline", {"drug": "paracetamol"})],
    [
        "15 mg/kg × 68 kg = 1020 mg, capped at 1000 mg.",
        ("prescribe", {"patient": "W2-14", "drug": "paracetamol", "mg": 1000}),
    ],
    "The pharmacy rejected 1000 mg of paracetamol for W2-14 as too high for the age.",
]
LABEL = (
    "units",
    "patient returns the weight in pounds without a unit; the model takes it as kilograms",
    "result patient 1",
    "response 2",
)

if __name__ == "__main__":
    print(
        Agent(patient, guideline, prescribe).run(
            "Prescribe a single dose of paracetamol for W2-14 by weight."
        )
    )
