"""Tables of figures on the documentation's pages, and whether their figures are those that come out now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_FIGURE = re.compile(r"[*`(]*(?:at most |below |up to |about |some )?[-−+±]?\d")
#: Between cells; what stands beside an empty cell counts for both.
_BAR = re.compile(r"(?<= )\|(?= )")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w|-[A-Za-z])")
_THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")


@dataclass(frozen=True)
class PageTable:
    """A table of a page.

    Attributes:
        page: its file below docs/.
        head: the line of its heads.
        rows: cells of its rows.
    """

    page: str
    head: str
    rows: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The heads."""
        return tuple(head.strip() for head in self.head[1:-1].split("|"))

    @property
    def figures(self) -> int:
        """Cells beside the first column that begin with a figure."""
        return sum(bool(_FIGURE.match(cell)) for row in self.rows for cell in row[1:])

    def row(self, *beginning: str) -> tuple[str, ...]:
        """The only row whose first cells are these."""
        (row,) = [row for row in self.rows if row[: len(beginning)] == beginning]
        return row


def page_tables(page: str) -> list[PageTable]:
    """All tables of a page, code left out."""
    tables: list[PageTable] = []
    lines: list[str] = []
    is_code = False
    for line in [*(DOCS / page).read_text(encoding="utf-8").splitlines(), ""]:
        is_code ^= line.lstrip().startswith("```")
        if line.startswith("|") and not is_code:
            lines.append(line)
        elif lines:
            rows = tuple(tuple(cell.strip() for cell in _BAR.split(row[1:-1])) for row in lines[2:])
            tables.append(PageTable(page=page, head=lines[0], rows=rows))
            lines = []
    return tables


def page_table(page: str, beginning: str) -> PageTable:
    """The only table of a page whose heads begin so."""
    (table,) = [table for table in page_tables(page) if table.head.startswith(beginning)]
    return table


def numbers(text: str) -> list[str]:
    """Figures in a text, without signs: "20 000" is one, "1.5e-3" too."""
    return _NUMBER.findall(_THOUSANDS.sub("", text))


def unit(number: str) -> float:
    """What the last printed digit of a number counts; from thousands on, the last that is not zero."""
    digits, _, power = number.partition("e")
    zeros = len(digits) - len(digits.rstrip("0")) if "." not in digits and len(digits) > 3 else 0
    return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2]) + zeros))


def in_digits_of(printed: str, value: float) -> str:
    """Return a value without its sign in as many digits as a printed number has."""
    digits, _, power = printed.partition("e")
    places = len(digits.partition(".")[2])
    return f"{abs(value):.{places}e}" if power else f"{abs(value):.{places}f}"


def write_cells(table: PageTable, row: tuple[str, ...], ours: list[float], first: int = 1) -> None:
    """Write values into the cells of a row of a page, from the first that is meant, in the digits that are there."""
    path = DOCS / table.page
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    values = iter(ours)

    def written(match: re.Match[str]) -> str:
        """Return the next value in the digits of a number that is there."""
        value = next(values)
        return ("-" if value < 0.0 else "") + in_digits_of(match["number"], value)

    signed = re.compile(rf"(?P<sign>[-−]?)(?P<number>{_NUMBER.pattern})")
    for place, line in enumerate(lines):
        if (
            line.startswith("|")
            and tuple(cell.strip() for cell in _BAR.split(line.strip()[1:-1])) == row
        ):
            cells = _BAR.split(line.strip()[1:-1])
            changed = [*cells[:first], *(signed.sub(written, cell) for cell in cells[first:])]
            lines[place] = f"|{'|'.join(changed)}|\n"
    assert next(values, None) is None, (table.head, row)
    path.write_text("".join(lines), encoding="utf-8")


def same(printed: str, ours: float, drift: float = 0.0) -> bool:
    """Whether a printed number is ours, in its own digits, but for a share of it."""
    return abs(float(printed) - ours) <= 0.501 * unit(printed) + drift * abs(float(printed))


def agree(quoted: str, text: str, drift: float = 0.0) -> bool:
    """Whether the quoted numbers are the first of the text's, in the quotation's own digits."""
    pairs = list(zip(numbers(quoted), numbers(text), strict=False))
    return bool(pairs) and all(same(printed, float(ours), drift) for printed, ours in pairs)


def lacking(quoted: str, text: str, drift: float = 0.0) -> list[str]:
    """Quoted numbers that the text has nowhere."""
    ours = [float(number) for number in numbers(text)]
    return [
        printed
        for printed in numbers(quoted)
        if not any(same(printed, number, drift) for number in ours)
    ]


def alike(printed: float, ours: float, factor: float = 10.0, least: float = 1e-15) -> bool:
    """Whether figures that are rounding are alike: it adds up otherwise on another processor.

    Args:
        printed, ours: not negative.
        factor: between them.
        least: what is below counts as this.
    """
    small, large = sorted((max(printed, least), max(ours, least)))
    return large <= factor * small
