"""Flops and bytes of a linear layer by shape."""


def flops(rows: int, outputs: int, inputs: int) -> int:
    """Multiplications and additions."""
    return 2 * rows * outputs * inputs


def bytes(rows: int, outputs: int, inputs: int, weight_bytes: int = 4) -> int:
    """Read the weight and the float32 rows once, write the result once."""
    return outputs * inputs * weight_bytes + 4 * rows * (inputs + outputs)
