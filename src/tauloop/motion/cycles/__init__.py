"""Cyclic motions between stations: pick-and-place lists, the way of each leg, and how long it takes."""
