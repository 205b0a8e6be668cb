"""Structures of beams, rigid bodies and joints: stiffness, mass, modes, preload and heat."""
