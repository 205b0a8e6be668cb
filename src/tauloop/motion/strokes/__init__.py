"""A path placed in the coordinates of a machine: its velocities, its checks, and dry friction on it."""
