"""Limits of the diagnostics, beyond which a run has failed."""

#: Position residuals (characteristic lengths or pure numbers) above this mean that Newton's method
#: has not arrived.
CONVERGED = 1e-9
#: Bounds of tensions are kept where they are missed by less than this share of the largest figure:
#: rounding is 1e-11.
WITHIN = 1e-9
#: A pivot below this share of its typical size means a singular pose.
SMALLEST_PIVOT = 1e-9
#: Forces whose rounding is above this share of them are doubtful: near a dead centre they grow
#: without bound.
ACCURATE = 1e-6
#: Newton steps that a pose near its start takes at most: of 11 000 random poses of 37 machines, all
#: that had left their mode took more.
FEW_STEPS = 8
#: Largest error of a quaternion's norm that is taken for rounding.
UNIT_NORM = 1e-6
