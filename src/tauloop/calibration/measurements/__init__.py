"""Measurements: instruments, what they read, files of readings, and simulated ones."""
