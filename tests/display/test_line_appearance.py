"""Lines of plots that lie on each other."""

from __future__ import annotations

from tauloop.display.pieces import Plot, PlotTrace
from tauloop.display.renderers.appearance import appearances


def dashes(*lines: tuple[float, ...]) -> list[str]:
    """Return the dashes of lines over 0, 1, 2."""
    traces = tuple(
        PlotTrace(name=str(i), x=(0.0, 1.0, 2.0), y=line) for i, line in enumerate(lines)
    )
    return [look.dash for look in appearances(Plot(title="", x="", y="", traces=traces))]


def test_a_line_that_covers_another_one_is_dashed() -> None:
    first, other = (0.0, 1.0, 4.0), (0.0, 2.0, 4.0)
    assert dashes(first, other, first, first) == ["solid", "solid", "dash", "dot"]
    near = (0.0, 1.001, 4.0)
    assert dashes(first, near) == ["solid", "dash"]
    assert dashes(first, other) == ["solid", "solid"]


def test_lines_of_other_lengths_or_with_gaps_are_solid() -> None:
    short = PlotTrace(name="a", x=(0.0, 1.0), y=(0.0, 1.0))
    long = PlotTrace(name="b", x=(0.0, 1.0, 2.0), y=(0.0, 1.0, 2.0))
    gap = PlotTrace(name="c", x=(0.0, 1.0, 2.0), y=(0.0, None, 2.0))
    looks = appearances(Plot(title="", x="", y="", traces=(short, long, gap)))
    assert [look.dash for look in looks] == ["solid"] * 3
