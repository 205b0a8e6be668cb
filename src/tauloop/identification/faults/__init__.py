"""Faults of logs: what is wrong with channels, and what of the forces no term of the model has."""
