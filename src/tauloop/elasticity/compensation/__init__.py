"""Corrected motor positions of a loaded and warm machine.

At these positions the tool is at the commanded pose. This package must not import exporters.
"""
