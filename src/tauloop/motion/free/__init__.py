"""Motions from here to there whose path is free: direct collocation on the manifold of the loops."""
