"""Arithmetic that experiments share, apart from all measuring. Pure."""
