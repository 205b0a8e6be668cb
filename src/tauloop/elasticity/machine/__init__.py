"""The elastic structure of a machine at its poses."""
