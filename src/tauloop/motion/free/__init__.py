"""Motions between two poses along a free path: direct collocation on the manifold of the loops."""
