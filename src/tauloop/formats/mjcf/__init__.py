"""MJCF files, read and written."""
