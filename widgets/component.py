"""A component of a page drawn by an ES module of our own: what all of them have in common."""

from panel.custom import AnyWidgetComponent


class Component(AnyWidgetComponent):
    """A module with plain nodes and no React in it, hosted by Panel."""

    __abstract = True

    # The one panel-material-ui brings: a page takes the first and warns about every other.
    _react_version = "18.3.1"
