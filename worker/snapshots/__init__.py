"""KV snapshots in memory that all workers of a host share: what is stored, found, written, claimed.

Knows files and tokens; what the state bytes mean is the backend's matter.
"""
