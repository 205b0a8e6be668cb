"""Printed values of section 4.2 of the paper."""

from __future__ import annotations

#: Weights of the first cost, before Table 1; rise and settling time are those of the nominal gains.
WEIGHTS = {"rise_time": 1.7473, "overshoot": 1e-4, "settling_time": 3.957}
#: Its start: the cost 3.00354 leaves this overshoot, in weights of 1e-4.
NOMINAL = {"rise_time": 1.7473, "settling_time": 3.957, "overshoot": 1.00354e-4}
#: Table 1: cost and (K_p, T_i, T_d) by method, from (200, 1.5, 0.05) with cost 3.00354.
TABLE_1 = {
    "pattern search": (1.67645, (292.01, 1.24, 0.01)),
    "SQP": (1.82310, (229.32, 1.38, 0.05)),
    "simplex": (1.88427, (223.38, 1.4, 0.073)),
    "genetic": (1.67730, (281.92, 1.25, 0.087)),
}
#: Weights of eqs. 2 and 3; the paper prints W1 = psi * 2165, and only 2165 / psi with psi = 10
#: agrees with its tables.
SWITCHING_WEIGHTS = {"energy": 216.5, "overshoot": 3e-4}
#: Table 2: cost at (e_max, e_min), methods from the first start and then from the second.
TABLE_2 = (
    (9.08898, (0.69, 0.41)),
    (9.06205, (0.62, 0.44)),
    (9.08140, (0.63, 0.45)),
    (9.06148, (0.62, 0.45)),
    (9.08444, (0.68, 0.4)),
    (9.47738, (1, 0.01)),
    (9.19005, (1, 0.24)),
    (9.06148, (0.62, 0.45)),
)
#: Table 3: energy and overshoot over their weights at (e_max, e_min), starts first.
TABLE_3 = (
    ((8.8531, 0.6901), (0.5, 0.25)),
    ((10.02246, 0.924029), (0.25, 0.01)),
    ((8.50622, 0.51865), (0.67, 0.4)),
    ((8.60525, 0.51835), (0.55, 0.33)),
    ((8.49155, 0.57118), (0.6, 0.44)),
    ((8.49167, 0.57253), (0.61, 0.45)),
    ((8.80359, 0.65697), (1, 0.033)),
    ((8.81529, 0.66332), (1, 0.01)),
    ((8.55782, 0.58015), (0.98, 0.28)),
    ((8.49013, 0.57150), (0.62, 0.44)),
)
#: Energy and switching parameters before and after, in the text after Table 3.
CONCLUSION = ((2165.0, (0.25, 0.01)), (1845.0, (0.6, 0.4)))
