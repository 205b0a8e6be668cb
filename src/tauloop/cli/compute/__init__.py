"""Commands that compute kinematics, workspace, forces and motion."""
