"""Shapes of bodies, the reader of the section `visual`, and joints as chains of primitives."""
