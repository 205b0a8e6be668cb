"""Standard tolerance grades of lengths (ISO 286-1:2010, table 1)."""

from __future__ import annotations

from bisect import bisect_left

from tauloop.common.errors import InputError

#: Largest lengths of the ranges of nominal sizes, mm; each range includes its largest length.
SIZE_LIMITS = (
    *(3, 6, 10, 18, 30, 50, 80, 120, 180, 250, 315, 400, 500),
    *(630, 800, 1000, 1250, 1600, 2000, 2500, 3150),
)
#: First grade of the table.
FIRST_GRADE = 1
#: Widths of the tolerance zones IT1 to IT18 in each range, um.
WIDTHS = (
    (0.8, 1.2, 2, 3, 4, 6, 10, 14, 25, 40, 60, 100, 140, 250, 400, 600, 1000, 1400),
    (1, 1.5, 2.5, 4, 5, 8, 12, 18, 30, 48, 75, 120, 180, 300, 480, 750, 1200, 1800),
    (1, 1.5, 2.5, 4, 6, 9, 15, 22, 36, 58, 90, 150, 220, 360, 580, 900, 1500, 2200),
    (1.2, 2, 3, 5, 8, 11, 18, 27, 43, 70, 110, 180, 270, 430, 700, 1100, 1800, 2700),
    (1.5, 2.5, 4, 6, 9, 13, 21, 33, 52, 84, 130, 210, 330, 520, 840, 1300, 2100, 3300),
    (1.5, 2.5, 4, 7, 11, 16, 25, 39, 62, 100, 160, 250, 390, 620, 1000, 1600, 2500, 3900),
    (2, 3, 5, 8, 13, 19, 30, 46, 74, 120, 190, 300, 460, 740, 1200, 1900, 3000, 4600),
    (2.5, 4, 6, 10, 15, 22, 35, 54, 87, 140, 220, 350, 540, 870, 1400, 2200, 3500, 5400),
    (3.5, 5, 8, 12, 18, 25, 40, 63, 100, 160, 250, 400, 630, 1000, 1600, 2500, 4000, 6300),
    (4.5, 7, 10, 14, 20, 29, 46, 72, 115, 185, 290, 460, 720, 1150, 1850, 2900, 4600, 7200),
    (6, 8, 12, 16, 23, 32, 52, 81, 130, 210, 320, 520, 810, 1300, 2100, 3200, 5200, 8100),
    (7, 9, 13, 18, 25, 36, 57, 89, 140, 230, 360, 570, 890, 1400, 2300, 3600, 5700, 8900),
    (8, 10, 15, 20, 27, 40, 63, 97, 155, 250, 400, 630, 970, 1550, 2500, 4000, 6300, 9700),
    (9, 11, 16, 22, 32, 44, 70, 110, 175, 280, 440, 700, 1100, 1750, 2800, 4400, 7000, 11000),
    (10, 13, 18, 25, 36, 50, 80, 125, 200, 320, 500, 800, 1250, 2000, 3200, 5000, 8000, 12500),
    (11, 15, 21, 28, 40, 56, 90, 140, 230, 360, 560, 900, 1400, 2300, 3600, 5600, 9000, 14000),
    (13, 18, 24, 33, 47, 66, 105, 165, 260, 420, 660, 1050, 1650, 2600, 4200, 6600, 10500, 16500),
    (15, 21, 29, 39, 55, 78, 125, 195, 310, 500, 780, 1250, 1950, 3100, 5000, 7800, 12500, 19500),
    (18, 25, 35, 46, 65, 92, 150, 230, 370, 600, 920, 1500, 2300, 3700, 6000, 9200, 15000, 23000),
    (
        22,
        30,
        41,
        55,
        78,
        110,
        175,
        280,
        440,
        700,
        1100,
        1750,
        2800,
        4400,
        7000,
        11000,
        17500,
        28000,
    ),
    (
        26,
        36,
        50,
        68,
        96,
        135,
        210,
        330,
        540,
        860,
        1350,
        2100,
        3300,
        5400,
        8600,
        13500,
        21000,
        33000,
    ),
)


def grade_tolerance(length: float, grade: int) -> float:
    """Return the tolerance ± t of a length in a standard grade, m: half the width of its zone.

    Args:
        length: nominal size, m.
        grade: number of the grade: 7 for IT7.

    Raises:
        InputError: the length or the grade is not in the table.

    Examples:
        >>> from tauloop.design import grade_tolerance
        >>> grade_tolerance(0.26, 7)
        2.6e-05
    """
    last = FIRST_GRADE + len(WIDTHS[0]) - 1
    if not FIRST_GRADE <= grade <= last:
        raise InputError.of("grade", f"is {grade}", f"use {FIRST_GRADE} to {last}")
    row = bisect_left(SIZE_LIMITS, round(1e3 * abs(length), 9))
    if row == len(SIZE_LIMITS):
        largest = SIZE_LIMITS[-1] / 1e3
        what = f"is {abs(length):g} m, the table ends at {largest:g} m"
        raise InputError.of("length", what, "give the tolerances instead of grades")
    return round(WIDTHS[row][grade - FIRST_GRADE] / 2, 3) * 1e-6
