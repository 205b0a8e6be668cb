"""Carrying states forward in time: one integrator with events, in C and, without a compiler, in Python."""
