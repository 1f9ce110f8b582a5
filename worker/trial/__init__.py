"""One worker's engine under a load of its own making, as the tuner measures it."""
