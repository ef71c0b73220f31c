"""Step time of a described training run: operators, collectives, bubble and memory of one step."""
