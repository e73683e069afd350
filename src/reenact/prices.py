"""The public names for money: ``from reenact.prices import Book``. They live in ``money/``."""

from .money.prices import Bill, Book, Price, money

__all__ = ["Bill", "Book", "Price", "money"]
