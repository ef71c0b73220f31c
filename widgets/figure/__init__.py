"""Charts as Bokeh figures: values in, a figure to compose out."""

from widgets.figure.draw import figure
from widgets.figure.panel import Panel, Series

__all__ = ["Panel", "Series", "figure"]
