"""Programs as C text."""
