"""Chrome traces: those of others read in, our own logs written out."""
