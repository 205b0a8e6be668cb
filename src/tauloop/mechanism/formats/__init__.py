"""Descriptions of other tools, read into a `Mechanism`."""

from tauloop.mechanism.formats.urdf import load_urdf

__all__ = ["load_urdf"]
