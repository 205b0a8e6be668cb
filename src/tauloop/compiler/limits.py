"""Tolerances of the diagnostics, beyond which a run has failed."""

#: Position residuals (characteristic lengths or dimensionless) above this indicate that Newton's
#: method has not converged.
CONVERGED = 1e-9
#: Largest accepted violation of tension bounds, relative to the largest right-hand side of their
#: conditions; rounding causes 1e-11.
WITHIN = 1e-9
#: A pivot below this fraction of its typical size indicates a singular pose.
SMALLEST_PIVOT = 1e-9
#: Forces with a larger relative rounding error are doubtful: near a dead center they grow without
#: bound.
ACCURATE = 1e-6
#: Maximum number of Newton steps for a pose near its start. Of 11 000 random poses of 37 machines,
#: all poses that had left their mode took more steps.
FEW_STEPS = 8
#: Largest error of a quaternion's norm that counts as rounding.
UNIT_NORM = 1e-6
