"""Checks of recorded signals: gaps, stamps, saturation, drop-outs, repairs."""
