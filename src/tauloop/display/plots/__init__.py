"""Plots of results and scenes of their machines, as data; this package never imports Matplotlib."""
