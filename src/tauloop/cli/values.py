"""Option values with units, for options that are not fields of an options class."""

from __future__ import annotations

from tauloop.mechanism.description.units import ANGLE, FREQUENCY, quantity


def frequency(option_name: str, text: str) -> float:
    """Return a frequency in Hz from a number with or without a unit."""
    return quantity(option_name, text, FREQUENCY)


def angle(option_name: str, text: str) -> float:
    """Return an angle in rad from a number with or without a unit."""
    return quantity(option_name, text, ANGLE)
