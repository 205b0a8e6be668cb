"""All assembly and working modes of a machine."""
