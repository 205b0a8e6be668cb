"""Choice of the preparation by validation: cut-offs, sources of velocity, filters and standstill."""
