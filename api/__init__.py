"""Floor 1: the gateway. HTTP in front of Redis; it never runs a model and never meets a worker."""
