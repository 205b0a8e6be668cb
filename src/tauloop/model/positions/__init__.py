"""Positions of a machine: along motions, from redundant encoders, and why a pose is not found."""
