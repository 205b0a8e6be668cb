"""Choice of the preparation by validation: cutoffs, sources of velocity, filters and standstill."""
