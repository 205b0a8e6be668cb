"""Preparation of logs: filters and velocities by validation, averaged periods, two-run method."""
