"""Telling others that a job or a batch has ended: where that may go, how it is signed, and when."""
