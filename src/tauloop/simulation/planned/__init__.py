"""Planned motions, with simulations of a sampled controller that follows them."""
