"""Solving a calibration: checks of measurements, initial frames, robust losses and the solver."""
