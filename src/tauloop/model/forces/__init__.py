"""Forces of redundant actuators, cables and passive freedoms, and of sampled motions."""
