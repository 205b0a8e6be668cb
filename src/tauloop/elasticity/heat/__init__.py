"""Thermal expansion of machines."""
