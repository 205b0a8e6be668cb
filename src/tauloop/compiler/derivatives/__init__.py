"""Derivatives of programs: Jacobians, tangents and products."""
