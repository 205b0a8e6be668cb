"""Descriptions of other tools, read into a `Mechanism`."""

from tauloop.mechanism.formats.mjcf import load_mjcf
from tauloop.mechanism.formats.options import ImportOptions, RodRecognition
from tauloop.mechanism.formats.urdf import load_urdf

__all__ = ["ImportOptions", "RodRecognition", "load_mjcf", "load_urdf"]
