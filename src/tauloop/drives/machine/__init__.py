"""Machines with drive lines on their actuators: paths, circles, play."""
