"""A calibration as functions of numbers: unknowns, equations of a pose, residuals and their Jacobian."""
