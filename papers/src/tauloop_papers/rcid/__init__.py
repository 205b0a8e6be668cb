"""Lopes and Almeida: the RCID by generalized momentum, what strokes it needs, and what it is for."""
