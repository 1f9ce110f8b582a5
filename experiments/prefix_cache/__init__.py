"""`mini-vllm experiment prefix-cache`: time to the first token by the length of a prefix that was computed
before: computed again, restored from a snapshot into another slot, and still in the same slot.

Expected: computing grows with the prefix, and faster than it; a snapshot is copied, some 20 KB for each token
of a small model, at the speed of memory; in the same slot nothing is to be done but the prompt's own end. All
three give the same tokens where kernels do not depend on the number of rows.
"""
