"""OpenAI's batches: a file of requests that trickles into the queue, and files of their answers.

A gateway holds a batch by a lease in Redis; what it records counts only while its fence is the newest.
"""
