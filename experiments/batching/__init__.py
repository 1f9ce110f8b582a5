"""`mini-vllm experiment batching`: tokens per second and the time of a step by the number of sequences.

Expected: a step reads all weights once, for however many rows. As long as the memory is what it waits for,
more sequences are free; from the knee on each further row costs its own computing, the tokens per second
stay, and the time between two tokens of a sequence grows with their number.
"""
