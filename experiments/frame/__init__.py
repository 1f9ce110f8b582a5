"""What all experiments have in common: the card, rounds in turn, what is noise, results and reports."""
