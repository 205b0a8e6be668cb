"""Simulation of machines with cables, in phases between changes of slack and taut cables."""
