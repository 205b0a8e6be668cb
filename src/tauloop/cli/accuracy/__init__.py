"""Commands on the accuracy of a machine at its tool."""
