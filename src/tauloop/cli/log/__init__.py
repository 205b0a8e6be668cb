"""Commands on recorded logs."""
