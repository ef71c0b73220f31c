"""Several streams of roles over one model: side by side, or in one stream that takes turns."""
