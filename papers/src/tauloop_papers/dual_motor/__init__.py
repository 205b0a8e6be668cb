"""Dressler, Schiffer and Robertsson, section 4.2: tuning of a drive line with an inferred plant."""
