"""Friction that the machine file lacks: asymmetric, Stribeck and presliding friction."""
