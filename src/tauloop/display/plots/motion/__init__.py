"""Plots of poses, motions, simulations and drive lines."""
