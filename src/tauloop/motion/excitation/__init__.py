"""Periodic motions that excite a machine: Fourier series, multisines, fades from and to rest."""
