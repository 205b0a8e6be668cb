"""What measurements can tell before a fit, and how good a fit is: observability, statistics, unseen poses."""
