"""Conversion of a machine's parts to parts of a structure.

This package must not import `tauloop.elasticity.machine.structure`.
"""
