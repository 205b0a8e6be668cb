"""Renderers of pieces: in a terminal with Rich, in figures with Matplotlib."""
