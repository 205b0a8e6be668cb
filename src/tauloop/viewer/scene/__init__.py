"""What the viewer shows in its scene: the machine, forces, marks, clouds, other machines."""
