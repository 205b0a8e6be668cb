"""Measurements: instruments, their readings, measurement files, and simulated readings."""
