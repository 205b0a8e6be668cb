"""A machine in motion as a stream for Rerun and Foxglove."""
