"""Files are read through `engine.core.limits`; each other read stands here, with its reason.

A path that a person or a foreign folder names may be a pipe, a device, or without end.
"""

import ast
import re

from tests.architecture.sources import sources
from tests.architecture.test_nothing_runs_data import aliases, spelled

HOME = "engine.core.limits"
OPENERS = frozenset(
    ("open", "io.open", "os.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open",
     "zipfile.ZipFile", "tarfile.open", "numpy.load", "numpy.memmap", "numpy.fromfile",
     "numpy.loadtxt", "numpy.genfromtxt", "numpy.lib.format.open_memmap", "torch.from_file",
     "safetensors.safe_open", "safetensors.torch.load_file", "safetensors.numpy.load_file",
     "PIL.Image.open", "pyarrow.memory_map", "pyarrow.OSFile", "pyarrow.parquet.read_table",
     "shutil.copyfile", "shutil.copy", "shutil.copy2", "shutil.copytree",
     "tokenizers.Tokenizer.from_file", "linecache.getlines", "fileinput.input")
)  # fmt: skip
METHODS = ("read_text", "read_bytes")  # of a path
READING = re.compile(r"r[bt]?\+?|rb?\+?t?")  # modes of a path's `open`
OF_LIMITS = frozenset(f"{HOME}.{name}" for name in (*METHODS, "open_regular"))
SHIPPED = frozenset(("engine.core.paths.dataset", "engine.core.paths.datasets"))

# (module, call): why it may. A name of ours is one that no person and no foreign folder gives.
KERNEL = "the operating system's own file under /proc, /sys or /dev"
OURS = "a file of this package, or one that this process has just written"
LOOKED_AT = "`regular` or `open_regular` looked at it before"
ALLOWED = {
    ("engine.core.limits", "os.open"): "the one place",
    ("engine.core.chrome.own", "gzip.open"): "of a stream that `open_regular` opened",
    ("engine.core.confined.child", "open"): KERNEL,
    ("engine.core.machine", "read_text"): KERNEL,
    ("engine.core.memory", "read_text"): KERNEL,
    ("engine.hardware.kept_code", "os.open"): "the lock of this person's own cache",
    ("engine.hardware.kept_code", "read_bytes"): "this person's own cache of compiled kernels",
    ("engine.hardware.measure", "read_text"): KERNEL,
    ("engine.kernels.compiled", "read_bytes"): OURS,
    ("engine.kernels.compiled", "read_text"): OURS,
    ("engine.training.data.token_file", "numpy.load"): LOOKED_AT,
    ("engine.training.data.token_file", "numpy.memmap"): LOOKED_AT,
    ("engine.training.loop.alone", "os.open"): "the lock of the folder that is trained into",
    ("engine.training.loop.checkpoint", "os.open"): OURS,
    ("engine.training.loop.checkpoint", "safetensors.safe_open"): LOOKED_AT,
    ("engine.training.parallel.checkpoint", "safetensors.safe_open"): LOOKED_AT,
    ("engine.training.quantisation.quantise", "shutil.copyfile"): LOOKED_AT,
    ("engine.training.trainer.train", "shutil.copyfile"): LOOKED_AT,
    ("widgets.export.export", "read_text"): OURS,
    ("widgets.export.share", "read_bytes"): OURS,
    ("widgets.page.script", "read_text"): OURS,
    ("workbench.benches._peers.llama_cpp", "read_text"): OURS,
    ("workbench.benches._peers.llama_cpp", "safetensors.numpy.load_file"): OURS,
    ("workbench.benches._peers.onnxruntime_genai", "read_text"): OURS,
    ("workbench.benches.serving", "shutil.copytree"): OURS,
    ("workbench.benches.simulator", "read_text"): KERNEL,
    ("workbench.jupyter.kernels", "read_text"): "its kind, owner and size are looked at before",
    ("workbench.jupyter.routes", "read_text"): OURS,
    ("workbench.labextension.build", "read_bytes"): OURS,
    ("workbench.labextension.build", "shutil.copyfile"): OURS,
    ("workbench.labextension.build", "shutil.copytree"): OURS,
    ("workbench.machine_load", "read_text"): KERNEL,
    ("workbench.notebook.pictures", "PIL.Image.open"): OURS,
    ("workbench.notebook.pictures", "read_bytes"): OURS,
    ("workbench.notebook.run_many", "read_text"): OURS,
    ("workbench.pages.frame.files", "read_bytes"): OURS,
    ("workbench.pages.frame.files", "read_text"): OURS,
    ("workbench.start.entry", "os.open"): "the null device",
}


def reads(tree):
    """(line, call) of every file that is opened to be read, but for those of `limits`."""
    known = aliases(tree)
    shadowed = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        first, _, rest = spelled(node.func).partition(".")
        name = ".".join(filter(None, (known.get(first, first), rest)))
        if name in OPENERS and name not in shadowed and not _writes(node, name):
            yield node.lineno, name
        elif isinstance(node.func, ast.Attribute) and name not in OF_LIMITS:
            called, held = node.func.attr, node.func.value
            modes = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            mode = next((m for m in modes if isinstance(m, str)), "")
            reading = called == "open" and READING.fullmatch(mode)
            if (called in METHODS or reading) and not _shipped(held, known):
                yield node.lineno, called


def _writes(node, name):
    """Whether it is plain that the call opens a file to write it."""
    mode = node.args[1] if len(node.args) > 1 else None
    if name == "os.open":
        return mode is not None and "O_WRONLY" in ast.unparse(mode)
    text = mode.value if isinstance(mode, ast.Constant) else ""
    return name == "open" and isinstance(text, str) and text[:1] in ("w", "a", "x")


def _shipped(held, known):
    """Whether the path is one of our datasets, found by `dataset`."""
    called = spelled(held.func) if isinstance(held, ast.Call) else ""
    return known.get(called, called) in SHIPPED


def test_every_other_read_is_known_by_name():
    found = [(m, call, line) for m, tree in sources().items() for line, call in reads(tree)]
    unknown = [f"{m}, line {n}: {call}" for m, call, n in found if (m, call) not in ALLOWED]
    assert not unknown, f"read through {HOME}, or say in ALLOWED why not"
    assert not ALLOWED.keys() - {(m, call) for m, call, _ in found}, "allowed, and not there"


def test_the_check_says_no_to_every_way_it_knows():
    for text in (
        "open(path)",
        "open(path, 'rb')",
        "open(path, mode)",
        "import io\nio.open(path)",
        "import os\nos.open(path, os.O_RDONLY)",
        "from pathlib import Path\nPath(name).read_text()",
        "(folder / name).read_bytes()",
        "path.open('rb')",
        "import numpy as np\nnp.load(path)",
        "from numpy import memmap\nmemmap(path)",
        "from safetensors import safe_open\nsafe_open(path, 'pt')",
        "from shutil import copyfile as copy\ncopy(a, b)",
        "from PIL import Image\nImage.open(path)",
        "from elsewhere import dataset\ndataset('a').read_text()",
    ):
        assert list(reads(ast.parse(text))), text
    for text in (
        "from engine.core.limits import read_text\nread_text(path)",
        "from engine.core import limits\nlimits.read_bytes(path, 'text_bytes')",
        "from engine.core.paths import dataset\ndataset('a.toml').read_text()",
        "live.open(config, clock)",
        "webbrowser.open(place)",
        "open(path, 'w')",
        "path.open('wb')",
        "import os\nos.open(path, os.O_WRONLY | os.O_CREAT)",
    ):
        assert not list(reads(ast.parse(text))), text
