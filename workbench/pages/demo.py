"""What the live page asks by itself: prompts that make sharing, forking and eviction visible."""

from collections.abc import Iterator
from itertools import count

STARTS = (
    'def read_lines(path):\n    """Return the lines of a file."""\n',
    "class Stack:\n    def __init__(self):\n",
    "import os\nimport sys\n\n\ndef main(argv=None):\n",
    "    for name in sorted(names):\n        if name.startswith('_'):\n",
    'def parse_date(text):\n    """Parse a date such as 2024-01-31."""\n',
    "class Request(object):\n    def __init__(self, url, data=None, headers=None):\n",
)
LONG = '''"""Tools for reading configuration files.

A configuration file consists of sections, each led by a "[section]" header and followed by
"name = value" entries. Values can be interpolated from the same section or from the defaults.
"""

import os
import re
import sys
import functools
import itertools
from collections import OrderedDict, ChainMap


class Error(Exception):
    """Base class for the exceptions of this module."""

    def __init__(self, msg=''):
        self.message = msg
        Exception.__init__(self, msg)


'''
ENDINGS = (
    "def read(self, filename):\n",
    "def write(self, fp):\n",
    "class NoSectionError(Error):\n",
    "def get(self, section, option):\n",
    "def items(self, section):\n",
    "def has_option(self, section, option):\n",
)


def endless() -> Iterator[str]:
    """Prompts one after another, every third of them over the same long beginning."""
    for number in count():
        if number % 3 == 2:
            yield LONG + ENDINGS[number // 3 % len(ENDINGS)]
        else:
            yield STARTS[(number - number // 3) % len(STARTS)]


def one_beginning() -> list[str]:
    """Six prompts that share their beginning."""
    return [LONG + ending for ending in ENDINGS]


def many(number: int = 20) -> list[str]:
    """More long prompts than the live page's cache holds, no two with the same beginning."""
    return [f"# {place}\n{STARTS[place % len(STARTS)]}{LONG}" for place in range(number)]
