"""How the command starts, before anything of weight is loaded."""
