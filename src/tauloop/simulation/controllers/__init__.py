"""Sampled control of a machine: control laws, the control loop, and its results."""
