"""Structures of beams, rigid bodies and joints: statics, modes, preload and thermal expansion."""
