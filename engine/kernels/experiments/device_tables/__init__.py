"""Tables of operator times on this machine's GPU, in the layouts that the cost model is fitted to.

Products, attention and experts run as engines run them: captured in a graph and replayed, weights
of several layers in turn. Each table is a list of rows by column name, or of why there is none. On
a processor ("cpu") small shapes walk the same path, right and of no use as figures.
"""

from collections.abc import Callable, Iterator, Mapping

from engine.kernels.experiments.device_tables import attention, experts, products
from engine.kernels.experiments.device_tables.timing import Refused, Shape

TABLES: Mapping[str, Callable[[str], Iterator[Shape | Refused]]] = {
    "products": products.rows,
    "narrow_products": products.narrow_rows,
    "attention": attention.rows,
    "experts": experts.rows,
}
