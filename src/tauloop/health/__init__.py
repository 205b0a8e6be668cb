"""What this computer has for Tauloop, and how to get what is missing."""

from tauloop.health.look import CheckedPart as CheckedPart, Checkup as Checkup, doctor as doctor
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)
