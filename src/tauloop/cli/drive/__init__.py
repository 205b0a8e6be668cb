"""Commands on drive lines."""
