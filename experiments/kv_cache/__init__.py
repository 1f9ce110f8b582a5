"""`mini-vllm experiment kv-cache`: the same greedy answer with the KV cache, and with everything computed
again for each token.

Expected: without the cache token n costs a prompt of n tokens, so the slowdown grows with the length; it is
less than n, since a prompt is computed many rows at a time and a cached token one row at a time. The tokens
are the same, bit for bit, where kernels do not depend on the number of rows.
"""
