"""Regression data of logs, in full and condensed, their columns and base parameters."""
