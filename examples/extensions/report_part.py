"""A part of reports of one's own: masses of bodies below what `tauloop check` says: a table, a figure, a plot."""

from collections.abc import Iterator, Mapping

from matplotlib.figure import Figure
from rich.table import Table

import tauloop as tl
from tauloop.display import Piece, Plot, PlotTrace, ReportPart
from tauloop.kinematics import Inspection
from tauloop.testing import check_report_part


class Masses(ReportPart):
    """Mass of every body, kg."""

    name, takes = "masses", "Inspection"

    def tables(self, result: Inspection) -> Iterator[Table]:
        """See `ReportPart`."""
        table = Table("body", "mass [kg]", title="Masses")
        for body, mass in self.data(result).items():
            table.add_row(body, f"{mass:.4g}")
        yield table

    def data(self, result: Inspection) -> Mapping[str, float]:
        """See `ReportPart`."""
        mechanism = result.model.mechanism
        return {
            body.name: mechanism.value(body.inertia.mass)
            for body in mechanism.bodies
            if body.inertia is not None
        }

    def figure(self, result: Inspection) -> Figure:
        """See `ReportPart`."""
        figure = Figure(layout="constrained")
        figure.add_subplot(ylabel="mass [kg]").bar(*zip(*self.data(result).items(), strict=True))
        return figure

    def pieces(self, result: Inspection) -> Iterator[Piece]:
        """See `ReportPart`."""
        masses = self.data(result)
        bars = PlotTrace(name="mass", x=tuple(masses), y=tuple(masses.values()), look="bars")
        yield Plot(title="Masses", x="body", y="mass [kg]", traces=(bars,))
        yield from super().pieces(result)


MASSES = Masses()

if __name__ == "__main__":
    check_report_part(MASSES, tl.check(tl.load("four_bar")))
    print(
        "masses of bodies are a part of reports: `tauloop check` prints it where a package brings it"
    )
