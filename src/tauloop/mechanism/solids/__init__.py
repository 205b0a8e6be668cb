"""Shapes of bodies: data, the parts of a machine file that state them, and primitives."""
