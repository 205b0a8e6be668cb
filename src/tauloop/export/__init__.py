"""Machines for other programs: C, controllers, FMUs, LinuxCNC, ROS 2. No package below the
command line imports it.
"""
