"""What moves the machine and the time in the viewer: sliders, gizmo, clock, modes, plots."""
