"""A model in a process of its own, on cores of its own, that measures what it is asked to."""
