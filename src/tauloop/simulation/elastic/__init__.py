"""Simulation of elastic machines: small deformations along a prescribed motion of the motors."""
