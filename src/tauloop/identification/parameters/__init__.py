"""Known, essential and consistent parameters, and their comparison with machine files."""
