"""The regression problem of a log: regressor and forces, in full and condensed, its columns and base parameters."""
