"""Interval arithmetic with first-order forms: batches in NumPy, and balls in python-flint's arb.

It knows expressions and numbers, but no machine.
"""
