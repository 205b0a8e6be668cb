"""Colors and sizes of type that all plots share."""

#: Different in lightness as well as in hue, so that they survive gray printing and color
#: blindness.
MEASURED, PREDICTED, RESIDUAL = "#9db9d9", "#16324f", "#c8553d"
#: Of frames and grids, of words, and behind what is held out.
FAINT, TEXT, TINT = "#c9ced6", "#30363d", "#f6f3ea"
#: Sizes of words, points.
SMALL, NORMAL, LARGE = 8.0, 9.0, 12.0
#: Lines of one panel; what has more shows the first.
COLOURS = (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED, "#8a6fb0", "#b08a3a")
