"""A path placed in the coordinates of a machine: velocities, checks and dry friction."""
