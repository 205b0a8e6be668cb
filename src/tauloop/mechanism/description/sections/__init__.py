"""Sections of a machine file: bodies and rods, joints, actuators, and the platform."""
