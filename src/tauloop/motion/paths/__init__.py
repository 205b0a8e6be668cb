"""Paths: curves in any number of coordinates, clothoids, and polylines with blended corners."""
