"""Friction beside the machine file's: motion of single elements, asymmetric, Stribeck and presliding columns."""
