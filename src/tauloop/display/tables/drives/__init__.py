"""Tables of drive lines."""
