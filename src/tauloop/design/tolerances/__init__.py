"""Errors of the tool by manufacturing tolerances, and the choice of tolerances."""
