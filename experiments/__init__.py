"""Floor 2: what is measured on this machine; each prints a table and, as its last line, JSON."""
