"""Periodic motions that excite a machine: Fourier series, multisines, and fading from and to rest."""
