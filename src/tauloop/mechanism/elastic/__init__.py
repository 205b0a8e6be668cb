"""Elastic data of a machine: materials, sections, beams, compliances and damping.

All values are expressions of the machine's independent parameters, so results can be differentiated
with respect to each of them. This package does not assemble or solve equations.
"""
