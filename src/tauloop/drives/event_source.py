"""C text that finds the first event within a step: the same for an axis alone and for a whole machine."""

from __future__ import annotations

from textwrap import indent

#: An event is located no nearer to the last one than this, s: guards that have just passed zero are rounding, and would
#: be found to pass it again and again. So many events in a row within the second figure, s, are given up.
ADVANCE, CROWDED, MOST_CROWDED = 1e-10, 1e-9, 200


def located_event(rates: str, depth: int) -> str:
    """Statements behind an accepted step of Dormand and Prince: its dense output, and where in it a mode ends.

    They set Q (NY, 4), the coefficients of the dense output; x, the share of the step that counts (1 without an
    event); and is_event. The violation of the modes is bracketed at the middle and the end of the step; the bracket
    is shortened by the Illinois rule, with a bisection every third time.

    Args:
        rates: statement that computes the rates dx and the indicators gx at the state `next`.
        depth: blanks before every line but the first.
    """
    return indent(
        f"""\
for (int i = 0; i < NY; ++i) for (int c = 0; c < 4; ++c) {{
    double sum = 0.0;
    for (int stage = 0; stage < 7; ++stage) sum += rk_P[stage * 4 + c] * K[stage][i];
    Q[i][c] = taken * sum;
}}
double x = 1.0;
int is_event = 0;
if (NS) {{
    double lo = 0.0, hi = 1.0, v_lo = violation(g, s), v_hi = violation(g_end, s);
    for (int i = 0; i < NY; ++i) next[i] = along(y[i], Q[i], 0.5);
    {rates}
    const double middle = violation(gx, s);
    if (middle > 0.0) hi = 0.5, v_hi = middle;
    else if (v_hi > 0.0) lo = 0.5, v_lo = middle;
    is_event = v_hi > 0.0;
    const double least = {ADVANCE!r} / taken < 0.25 ? {ADVANCE!r} / taken : 0.25;
    if (is_event && lo < least) {{
        for (int i = 0; i < NY; ++i) next[i] = along(y[i], Q[i], least);
        {rates}
        const double v = violation(gx, s);
        if (v > 0.0) hi = least;
        lo = least, v_lo = v;
    }}
    int side = 0;
    for (int tries = 0; is_event && tries < 90 && (hi - lo) * taken > 1e-15 * (1.0 + t) && hi - lo > 1e-16; ++tries) {{
        double at = 0.5 * (lo + hi);
        if (tries % 3 != 2 && v_lo < 0.0) at = (lo * v_hi - hi * v_lo) / (v_hi - v_lo);
        for (int i = 0; i < NY; ++i) next[i] = along(y[i], Q[i], at);
        {rates}
        const double v = violation(gx, s);
        if (v > 0.0) {{
            hi = at, v_hi = v;
            if (side == 1) v_lo *= 0.5;
            side = 1;
        }} else {{
            lo = at, v_lo = v;
            if (side == -1) v_hi *= 0.5;
            side = -1;
        }}
    }}
    if (is_event) x = hi;
}}
""",
        " " * depth,
    ).strip()
