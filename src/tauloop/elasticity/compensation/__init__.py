"""Motor positions at which a loaded and warm machine has its tool at the commanded pose.

This package must not import exporters.
"""
