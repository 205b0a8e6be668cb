"""Controls of the machine and the time in the viewer: sliders, gizmo, clock, modes, plots."""
