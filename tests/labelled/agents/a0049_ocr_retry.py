"""A scanning agent retries a page three times inside its tool; every try fails."""

from kit import Agent

TRIES = []


def ocr(page: int) -> str:
    TRIES.append(page)
    if page == 2:
        raise ConnectionRefusedError("OCR worker on port 8861 refuses connections")
    return "Statement of account, page 1. Opening balance 310.00."


def save(text: str) -> str:
    return "saved"


class Retrying(Agent):
    def perform(self, call, tries=4):
        try:
            return super().perform(call)
        except ConnectionError:
            if tries == 1:
                raise SystemExit(f"{call.name} failed four times") from None
            return self.perform(call, tries - 1)


MODEL = [("ocr", {"page": 1}), ("ocr", {"page": 2})]
LABEL = (
    "retries exhausted",
    "the OCR worker refuses every connection, and the loop ends the program after four tries",
    "result ocr 2",
    "result ocr 3",
    "result ocr 4",
    "result ocr 5",
    "call ocr 2",
)

if __name__ == "__main__":
    print(Retrying(ocr, save).run("Read pages 1 and 2 of the statement and save the text."))
