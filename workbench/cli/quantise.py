"""`workbench quantise`: a model folder's linear layers in 2, 4 or 8 bits, with its perplexity."""

import argparse
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.limits import read_text
from workbench.cli.output import folder, print_json, say

ABOUT = """write a model folder whose linear layers have 2, 3, 4 or 8 bits a weight

  workbench quantise stdlib-5m --out small/ --bits 4
  workbench quantise my-llama/ --out small/ --bits 4 --method gptq --text book.txt

The folder has the GPTQ layout: transformers and vLLM read it, and every command here does. That of
shiftadd (2 to 4 bits, its own groups) holds in float16 what its binary codes stand for, since that
layout has none. Of a text, the first half calibrates GPTQ and shiftadd, and the second is what both
perplexities are taken on."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FOLDER", help="a model folder or a shipped model")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the new one goes")
    parser.add_argument("--bits", type=int, default=4, choices=(2, 3, 4, 8), help="default 4")
    parser.add_argument("--group", type=int, default=64, metavar="N",
                        help="inputs that share a scale (default 64; 0: a whole row)")  # fmt: skip
    parser.add_argument("--method", default="nearest", choices=("nearest", "gptq", "shiftadd"),
                        help="round to nearest, GPTQ, or ShiftAddLLM")  # fmt: skip
    parser.add_argument("--zero", action="store_true", help="a zero for each group too")
    parser.add_argument("--text", metavar="FILE",
                        help="calibrates and judges (default: its validation.txt)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.models.loading.find import find
    from engine.models.loading.formats import is_gguf
    from engine.training.quantisation.quantise import quantise

    if args.group < 0 or args.group % 32:
        raise BadInput(f"--group {args.group}: give a multiple of 32, or 0 for a whole row")
    found = find(args.model)
    if found.folder is None:
        raise BadInput(f"model {args.model!r}: its weights are not here; give a folder with them")
    if is_gguf(found.folder):
        raise BadInput(f"model {args.model!r}: in codes already; give a folder of float weights")
    out = folder(args.out)
    if out.resolve() == found.folder.resolve():
        raise BadInput(f"--out {args.out}: is the model itself; choose another folder")
    result = quantise(
        found.folder, out, args.bits, args.group, args.method, args.zero,
        _text(args.text, found.folder), say,
    )  # fmt: skip
    if args.json:
        print_json(result)
        return 0
    print(f"{result['layers']} linear layers at {result['bits_per_weight']:.2f} bits a weight "
          f"in {result['out']}")  # fmt: skip
    if "perplexity" in result:
        print(f"perplexity {result['perplexity']:.2f}, {result['perplexity_before']:.2f} before, "
              f"over {result['tokens']} tokens")  # fmt: skip
    return 0


def _text(given: str | None, folder: Path) -> str:
    """The text to judge by; "" where there is none."""
    file = Path(given).expanduser() if given else folder / "validation.txt"
    if not given and not file.is_file():
        return ""
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{file}: cannot be read as text ({fault}); give another") from None
