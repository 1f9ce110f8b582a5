"""`mini-vllm experiment layouts`: one worker with all cores against one worker for each core, and what lies
between, under the same clients, at rest and beside a busy neighbour.

Expected: one worker with all threads reads the weights once for the whole batch; many small ones share
nothing but wait for nobody. A neighbour on one core takes its share of one small worker, and slows the whole
of a large one, whose threads all wait for the slowest.
"""
