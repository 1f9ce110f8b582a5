"""Floor 0: what the gateway and the workers both speak; imports nothing else of ours."""
