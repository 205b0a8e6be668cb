"""Forces of redundant actuators, cables and passive degrees of freedom, and of sampled motions."""
