"""Public names: lazy imports, deprecated names, and suggestions for unknown names."""
