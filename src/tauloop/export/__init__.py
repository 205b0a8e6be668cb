"""Machines for other programs: C, controllers, FMUs, LinuxCNC, ROS 2.

Only the command line and the packages that run exported code import this package.
"""
