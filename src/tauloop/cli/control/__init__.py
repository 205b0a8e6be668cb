"""Commands on a machine under sampled control."""
