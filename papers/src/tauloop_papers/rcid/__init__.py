"""Lopes and Almeida: the RCID by generalized momentum, its strokes, and its tasks."""
