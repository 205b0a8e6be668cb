"""Planned motions, tried out under a sampled controller."""
