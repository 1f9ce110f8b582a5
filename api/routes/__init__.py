"""The routes, one file per noun: each reads its input, asks, and answers."""
