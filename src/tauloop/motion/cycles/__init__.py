"""Cyclic motions between stations: pick-and-place lists, path of each leg, and durations."""
