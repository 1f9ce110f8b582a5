"""`mini-vllm experiment threads`: decode and prompt speed by number of threads, at rest and beside a busy
neighbour, and how much of the machine's memory bandwidth decoding makes use of.

Expected: prompts are computed, so they grow with the cores; a decode step of one sequence reads all weights
for one row, so it stops growing where the memory is busy. More threads than cores wait for each other in
every one of the step's hundreds of barriers; and a neighbour on one core slows all threads down to the
slowest.
"""
