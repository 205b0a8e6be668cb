"""Tables of poses, motions and simulations."""
