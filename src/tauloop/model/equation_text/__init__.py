"""Equations of a machine as text, and what they cost."""
