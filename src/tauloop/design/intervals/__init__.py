"""Interval arithmetic with first-order forms: batches in NumPy, and balls in python-flint's arb.

This package depends on expressions and numbers, not on machines.
"""
