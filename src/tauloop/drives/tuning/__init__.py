"""Tuning of a drive line's control within bounds by several methods, with robustness."""
