"""Tables of designs: tolerances."""
