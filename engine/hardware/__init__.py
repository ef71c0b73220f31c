"""Devices, links and the roofs they put over work. Data sheets lie in datasets/hardware."""

from engine.hardware.device import Device, device, devices
from engine.hardware.link import Link, link, links
from engine.hardware.roofline import Bound, attainable, bound, ridge
from engine.hardware.roofs import roofs_of

__all__ = [
    "Bound",
    "Device",
    "Link",
    "attainable",
    "bound",
    "device",
    "devices",
    "link",
    "links",
    "ridge",
    "roofs_of",
]
