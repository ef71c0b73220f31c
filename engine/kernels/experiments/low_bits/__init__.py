"""An experiment: products with weights of every width, their errors, bytes and times."""
