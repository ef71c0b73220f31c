"""Shapes and formats that integer products are held to and timed at."""

from engine.kernels.quantised.cases import case

CASES = (
    case(1, 1, 1, "int4", 0),
    case(3, 33, 7, "int4"),
    case(9, 70, 130, "int4", 64, zero=True),
    case(2, 100, 300, "int8", 0),
    case(5, 40, 320, "int2", 160, zero=True),
    case(17, 65, 64, "ternary", 16),
    case(0, 5, 3, "int4"),
)
SIZES = (
    case(1, 4096, 4096, "int8", 128),
    case(1, 4096, 4096, "int4", 128),
    case(16, 4096, 4096, "int4", 128),
)
