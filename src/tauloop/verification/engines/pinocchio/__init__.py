"""The machine in Pinocchio."""
