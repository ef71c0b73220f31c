"""`workbench train`: a model of one's own on one's own tokens, or a shipped one from its recipe."""

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from workbench.cli.output import folder, follow, print_json, print_table, say
from workbench.cli.run import changes
from workbench.train_preflight import ZERO, ZEROS, full_name, mesh_of

ABOUT = """train a model on a token file, or a shipped one again from its recipe

  workbench train stdlib-5m --out again/                      a recipe
  workbench train my-llama/ --data tokens.bin --out trained/  a folder or config.json on tokens
  workbench train my-llama/ --data book.txt --out trained/ --ranks 2 --set steps=500
  workbench train my-llama/ --data book.txt --out trained/ --mesh tensor=2,pipeline=2 \
      --set schedule=zb_h1 --set microbatches=4 --set zero=1
  torchrun --nproc-per-node 2 --no-python workbench train my-llama/ --data tokens.bin --out trained/

Ctrl-C saves a checkpoint; the same command goes on from there."""
SAVING = 120.0  # seconds within which a stopped training has to have written its checkpoint
RUN = "training.run"
KINDLY = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
TOLD = ("precision", "fallback", "resume", "checkpoint")  # marks that are said at the end


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="MODEL", help="a recipe, such as stdlib-5m; with --data a "
                        "model folder, a config.json or a known architecture")  # fmt: skip
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the model goes")
    parser.add_argument("--fast", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON")
    data = parser.add_argument_group("with a token file")
    data.add_argument("--data", metavar="FILE", help="tokens (.npy, .bin) or a text")
    data.add_argument("--validation", default="", metavar="FILE",
                      help="what to judge by (default: the end of the data)")  # fmt: skip
    data.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE",
                      help="a setting, such as steps=500 or rate=1e-3")  # fmt: skip
    data.add_argument("--knobs", action="store_true", help="list the settings and stop")
    data.add_argument("--random", action="store_true", help="begin with random weights")
    data.add_argument("--save", metavar="FILE", help=f"the run's file (default FOLDER/{RUN})")
    ranks = parser.add_argument_group("on several ranks")
    ranks.add_argument("--ranks", type=int, metavar="N",
                       help="processes; those that the mesh leaves over are replicas")  # fmt: skip
    ranks.add_argument("--mesh", metavar="NAME=N,…", help="ranks in each direction: tensor, "
                       "pipeline, context, data; see --knobs for what else they share")  # fmt: skip
    ranks.add_argument("--device", metavar="KIND",
                       help="cpu, or cuda for a GPU each, joined by NCCL")  # fmt: skip
    ranks.add_argument("--limit", metavar="SECONDS",
                       help="longest that a phase of a step may take (default 300)")  # fmt: skip
    ranks.add_argument("--port", metavar="N", help="where ranks meet (default: any free port)")
    ranks.add_argument("--ray", nargs="?", const="", metavar="ADDRESS",
                       help="ranks as actors of a local Ray or the cluster at ADDRESS")  # fmt: skip
    ranks.add_argument("--fault", metavar="RANK:PHASE:STEP",
                       help="kill a rank there (…:stop stops it), to see what happens")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    return _recipe(args) if args.data is None else _train(args)


def _recipe(args: argparse.Namespace) -> int:
    from engine.recipes.language_models import RECIPES, reproduce

    wanted = ["validation", "set", "knobs", "random", "save", "ranks", "mesh", "device",
              "limit", "port", "fault", "ray"]  # fmt: skip
    given = [name for name in wanted if getattr(args, name) not in (None, "", False, [])]
    if given:
        recipes = ", ".join(RECIPES)
        raise BadInput(
            f"--{given[0]}: for training on tokens; give --data FILE (recipes: {recipes})"
        )
    try:
        result = reproduce(args.name, folder(args.out), say, args.fast)
    except OSError as fault:
        raise BadInput(f"{args.out}: cannot train into it ({fault}); choose another") from None
    if args.json:
        print_json(result)
    else:
        print(f"trained {args.name} into {args.out}")
    return 0


def configured(args: argparse.Namespace) -> Any:
    """The TrainerConfig that the arguments ask for. Raises BadInput."""
    from engine.core.config import update
    from engine.distributed.faults import read_fault
    from engine.training.trainer.config import TrainerConfig, on_ranks, settings_for

    settings = settings_for(args.name, args.random, args.fast)
    config = TrainerConfig(
        model=args.name, data=args.data, out=args.out, validation=args.validation,
        random=args.random, training=settings,
    )  # fmt: skip
    turned = {full_name(name): value for name, value in changes(args.set).items()}
    mesh = {f"parallel.mesh.{name}": size for name, size in mesh_of(args.mesh or "").items()}
    if twice := sorted(mesh.keys() & turned.keys()):
        raise BadInput(f"{twice[0]}: both --mesh and --set say it; leave one out")
    turned |= mesh
    for name in ("device", "limit", "port", "fault", "ray"):
        if getattr(args, name) is not None:
            turned[name] = getattr(args, name)
    if args.fault:
        read_fault(args.fault)
    if turned.get(ZERO) in ZEROS:
        turned[ZERO] = ZEROS[turned[ZERO]]
    made = update(config, turned)
    return made if args.ranks is None else on_ranks(made, args.ranks)


def _train(args: argparse.Namespace) -> int:
    from engine.core.file import save
    from engine.core.run import Run
    from engine.training.loop.alone import alone, made
    from workbench.cli.run import list_knobs
    from workbench.train_preflight import check_data, finished

    check_data(args.data, args.name)
    config = configured(args)
    if args.knobs:
        return list_knobs(config, args.json)
    if done := finished(config):
        return _already(config, done, args.json)
    if config.ray is not None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    driver, first = _driver()
    out = made(folder(config.out))
    place = args.save or str(out / RUN)
    with ExitStack() as held:
        if first:
            held.enter_context(alone(out))
        running = Run.start(driver, config, seed=config.training.seed, study="training")
        held.enter_context(_ended_kindly())
        code, unsaved = _ended(running, first), 0
        # However it ended, what happened can be looked at.
        if first and running.log.events:
            try:
                save(running.log, place)
            except BadInput as fault:  # it must not hide why the training itself ended
                say(f"workbench: {fault}")
                unsaved = 2
        if code == 2:
            say(f"workbench: {running.failure}{goes_on(running.failure, out)}")
        elif first:
            _say_how_it_ended(running.log, config, place, args.json, code)
    return code or unsaved


def _already(config: Any, line: str, as_json: bool) -> int:
    if as_json:
        print_json({"out": config.out, "steps": config.training.steps, "finished_before": True})
    else:
        print(line)
    return 0


def _ended(running: Any, first: bool) -> int:
    """Wait for the end, and hear no more of requests to end; the exit code."""
    try:
        follow(running, SAVING) if first else _wait(running)
    except BadInput:
        return 2
    except KeyboardInterrupt:
        # Where a rank was lost, torchrun ends the others: the loss is what is to be told.
        return 2 if isinstance(running.failure, BadInput) else 130
    finally:
        for kind in KINDLY:
            signal.signal(kind, signal.SIG_IGN)
    return 0


def _driver() -> tuple[Any, bool]:
    """The driver, and whether this process is the one that speaks: not so for torchrun's others."""
    from engine.distributed.launch import place_from, require_single
    from engine.training.trainer.run import run, run_as_rank

    if "TORCHELASTIC_RUN_ID" not in os.environ:
        require_single(os.environ)
        return run, True

    place = place_from(os.environ)
    return (lambda config, live: run_as_rank(config, live, place)), place.rank == 0


def _wait(running: Any) -> None:
    """Wait without a word; an interrupt ends this rank at the step at which all others end."""
    try:
        running.wait()
    except KeyboardInterrupt:
        running.stop()
        running.ended.wait(SAVING)
        raise


def goes_on(failure: Any, out: Path) -> str:
    """After the loss of a rank: where the same command goes on from."""
    from engine.distributed.faults import RankLost
    from engine.training.parallel.checkpoint import finished
    from engine.training.trainer.train import CHECKPOINTS

    if not isinstance(failure, RankLost):
        return ""
    left = finished(out / CHECKPOINTS)
    where = f"goes on from {left[0].name} of {left[0].parent}" if left else "begins anew"
    return f"; the same command {where}"


@contextmanager
def _ended_kindly() -> Iterator[None]:
    """A polite request to end, as schedulers, torchrun and terminals that close send it, is
    Ctrl-C."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = {kind: signal.getsignal(kind) for kind in KINDLY}
    heeded = [kind for kind in KINDLY if before[kind] is not signal.SIG_IGN]  # as nohup has it
    for kind in heeded:
        signal.signal(kind, interrupt)
    try:
        yield
    finally:
        for kind in heeded:
            signal.signal(kind, before[kind])


def _say_how_it_ended(log: Any, config: Any, place: str, as_json: bool, code: int) -> None:
    from engine.core.events import Level, Mark

    found = {level.name: level.value for level in log.of(Level)}
    marks = [mark for mark in log.of(Mark) if mark.name in TOLD]
    if code:
        saved = [mark.text for mark in marks if mark.name == "checkpoint"]
        if saved:
            say(f"stopped; checkpoint at {saved[-1]}; the same command goes on from there")
        else:
            say("stopped before a checkpoint of its own; the same command goes on from the last")
        return
    names = ("loss", "validation_loss", "tokens_per_second", "bytes_sent")
    facts = {name: found[name] for name in names if name in found}
    if as_json:
        marked = {mark.name: mark.text for mark in marks}
        print_json({"out": config.out, "run": place, "steps": config.training.steps,
                    **facts, **marked})  # fmt: skip
        return
    for mark in marks:
        if mark.name != "checkpoint":
            print(f"{mark.name}: {mark.text}")
    print_table(("figure", "value"), [(name, f"{value:,.4g}") for name, value in facts.items()])
    print(f"\ntrained {config.model} into {config.out}; see it with `workbench open {place}`")
