"""Plots of identification and calibration."""
