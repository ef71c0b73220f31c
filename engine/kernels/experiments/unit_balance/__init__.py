"""Attention whose softmax is balanced over unequal units: fewer rescales, exponentials on FMAs."""
