"""Estimators, error models, fits and their prediction errors."""
