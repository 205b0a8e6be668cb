"""Commands that compare a machine with measurements and other engines."""
