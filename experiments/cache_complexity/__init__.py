"""`mini-vllm experiment cache-complexity`: what an answer costs by its length, with the KV cache and without.

Expected: with the cache a token costs its own row and a look back at all before it: a + bN + cN² in all,
with a c so small (attention's own) that it is nearly a line. Without it token n costs a prompt of n tokens,
so that the sum is a square with a large c, and, attention being a square itself, has a cube beyond. Where the
curves leave that: prompts are computed many rows at a time, which a cached token is not.

One prompt of N tokens, timed at the borders of its chunks, is the recompute of every shorter length: the sum
over an answer comes from that curve, not from N prompts.
"""
