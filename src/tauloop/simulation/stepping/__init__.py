"""Step-by-step integration of a machine's equations."""
