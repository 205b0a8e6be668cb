"""Interval arithmetic with affine forms: batches in NumPy, and balls in python-flint's arb.

This package depends on expressions and numbers, not on machines.
"""
