"""The equations of a drive line: elements, transmissions, control, and the hybrid system of them."""
