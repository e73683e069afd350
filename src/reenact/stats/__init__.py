"""Sums over one run or many: tokens, money, durations, errors, groups. Imports `recording` and `money`."""
