"""Stiffness, stress, buckling and compliance of machines."""
