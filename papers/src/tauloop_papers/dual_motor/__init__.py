"""Dressler, Schiffer and Robertsson, section 4.2: a drive line tuned, its plant inferred from print."""
