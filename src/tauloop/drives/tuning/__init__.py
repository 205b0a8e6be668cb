"""Tuning: the least cost of a drive line's control within bounds, by several methods; compromises, robustness."""
