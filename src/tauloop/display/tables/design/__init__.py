"""Tables of designs: proofs, tolerances, synthesis."""
