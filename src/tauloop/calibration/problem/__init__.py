"""Calibration as a numerical problem: unknowns, equations of a pose, residuals and their Jacobian."""
