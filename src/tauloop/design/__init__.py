"""Design with proofs: certified boxes of poses.

It uses models and their kinematics; it must not import simulation, identification or display.
"""
