"""Estimators, models of the errors, fits, and how well they predict."""
