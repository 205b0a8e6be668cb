"""Dressler, Schiffer and Robertsson, section 3: calibration of the Gantry-Tau."""
