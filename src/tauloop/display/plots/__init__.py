"""Plots of results and scenes of their machines, as data; nothing of this package imports Matplotlib."""
