"""Elastic structures: stiffness, vibration and buckling of a machine's links, joints and drives.

It must not import applications such as simulation, identification and calibration.
"""
