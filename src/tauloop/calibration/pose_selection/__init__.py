"""Selection of poses to measure: candidates, exchange algorithm, and the plan."""
