"""Tasks with checkable answers: problems drawn by seed, in two splits that share no problem."""
