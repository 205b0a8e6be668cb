"""Sampled controllers around a machine: their laws, the loop, and what comes of it."""
