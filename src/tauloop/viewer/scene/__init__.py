"""Contents of the viewer's scene: the machine, forces, marks, clouds, other machines."""
