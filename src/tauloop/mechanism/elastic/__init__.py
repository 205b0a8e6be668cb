"""Elastic data of a machine: materials, sections, beams, compliances and damping.

All values are expressions over the machine's independent parameters, so results have derivatives
with respect to each of them. Nothing here assembles or solves equations.
"""
