"""URDF files, read and written."""
