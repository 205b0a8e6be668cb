"""Equations of a drive line: elements, coordinates, control, and the hybrid system of all."""
