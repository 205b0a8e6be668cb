"""Public names: imported when they are used, old ones, and suggestions for unknown ones."""
