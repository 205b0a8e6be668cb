"""Hostile input for everything that reads: damaged copies of good files, kept cases, and what may come of them."""
