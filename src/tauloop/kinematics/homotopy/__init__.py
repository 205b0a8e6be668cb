"""Polynomial continuation: all solutions of polynomial systems."""
