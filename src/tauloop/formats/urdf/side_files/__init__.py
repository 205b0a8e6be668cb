"""Files next to a URDF: Tauloop's side file, and loop closures of Gepetto's ``robot.yaml``."""
