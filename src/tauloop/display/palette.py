"""Colors and font sizes of all plots."""

#: Colors of measured values, predicted values and residuals. They differ in lightness and in hue,
#: so that they can be distinguished in gray prints and by color-blind readers.
MEASURED, PREDICTED, RESIDUAL = "#9db9d9", "#16324f", "#c8553d"
#: Colors of frames and grids, of text, and of the background of held-out samples.
FAINT, TEXT, TINT = "#c9ced6", "#30363d", "#f6f3ea"
#: Font sizes, points.
SMALL, NORMAL, LARGE = 8.0, 9.0, 12.0
#: Colors of lines, in order.
COLORS = (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED, "#8a6fb0", "#b08a3a")
