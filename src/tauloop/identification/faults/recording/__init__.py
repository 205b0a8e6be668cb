"""Faults of the recording: dead channels, jumps of samples, nonuniform or wrong times."""
