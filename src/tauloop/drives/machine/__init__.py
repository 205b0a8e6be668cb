"""Machines with drive lines on their actuators: paths, circular tests and backlash."""
