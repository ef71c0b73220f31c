"""Tables of operator times on this machine's GPU, in the layouts that the cost model is fitted to.

Products and attention run as a serving engine runs them: captured in a graph and replayed, weights
of several layers in turn. Each table is a list of rows by column name. On a processor ("cpu") small
shapes walk the same path, right and of no use as figures.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from engine.kernels.experiments.device_tables import attention, products

Row: TypeAlias = Mapping[str, object]
TABLES: Mapping[str, Callable[[str], Iterator[Row]]] = {
    "products": products.rows,
    "narrow_products": products.narrow_rows,
    "attention": attention.rows,
}
