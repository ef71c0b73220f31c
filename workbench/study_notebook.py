"""A notebook made for a study: what it is, a live page, its figures, its claims, what to try.

In comes a study, out goes a notebook without outputs, ready to run and to be changed.
"""

from pprint import pformat

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from engine.core.config import Config, knobs
from widgets.knobs.config_text import changes, underscored
from workbench.catalogue import entry
from workbench.study import GRADES, Study

TAG = "parameters"  # of the cell whose names a run may set
SHOWN = 8  # knobs told in words


def notebook_of(study: Study, config: Config | None = None) -> nbformat.NotebookNode:
    """Cells: question, parameters, run and picture, figures, knobs, three things to try, claims,
    limits. `config`: what the study is opened with; its own unless given."""
    turned = changes(config, study.config) if config is not None else {}
    knobs_set = "".join(f", {name}={value!r}" for name, value in underscored(turned).items())
    row = entry(study.slug)
    title = study.title or row.title
    arxiv = f", arXiv {row.arxiv}" if row.arxiv else ""
    cells = [
        new_markdown_cell(f"# {title}\n\n*{row.paper}{arxiv}*\n\n{study.about}"),
        new_code_cell(PARAMETERS, metadata={"tags": [TAG]}),
        new_code_cell(OPEN.format(slug=study.slug, knobs=knobs_set)),
        new_markdown_cell(FIGURES),
        new_code_cell("study.figures()"),
        new_markdown_cell(_knobs(study)),
        new_markdown_cell("## Try\n\nEach of these sets the knobs to an interesting place."),
    ]
    for label, tried in study.tries:
        source = f"# {label}\nstudy.turn(**{pformat(underscored(dict(tried)), sort_dicts=False)})"
        cells.append(new_code_cell(f"{source}\nstudy.figures()"))
    cells += [
        new_markdown_cell(_claims(study)),
        new_code_cell(CLAIMS),
        *_maps(study),
        new_markdown_cell(f"## Where it stops being true\n\n{study.limits}"),
    ]
    made = new_notebook(cells=cells)
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(made.cells):
        cell.id = f"{study.slug}-{number}"[:64]  # the same study gives the same file
    return made


def _maps(study: Study) -> list[nbformat.NotebookNode]:
    """When is the paper right? Every map of where a claim holds."""
    if not study.regimes:
        return []
    shows = "\n".join(f"show(study.figure({regime.name!r}))" for regime in study.regimes)
    return [new_markdown_cell(MAPS), new_code_cell(f"{SHOW}\n{shows}")]


def _knobs(study: Study) -> str:
    shown = [knob for knob in knobs(study.config) if not knob.group][:SHOWN]
    rows = "\n".join(
        f"| `{knob.path.replace('.', '__')}` | {knob.doc} | {knob.value} {knob.unit} |".replace(
            "\n", " "
        )
        for knob in shown
    )
    return (
        "## Knobs\n\n`study.turn(name=value)` sets one and runs again; "
        f"`workbench run {study.slug} --knobs` lists all.\n\n"
        f"| knob | what it is | now |\n|---|---|---|\n{rows}"
    )


def _claims(study: Study) -> str:
    grades = "; ".join(
        f"**{g}**: {GRADES[g]}" for g in dict.fromkeys(c.grade for c in study.claims)
    )
    lines = "\n".join(f"- {claim.sentence} (paper: {claim.paper})" for claim in study.claims)
    return f"## Does the paper's claim hold here?\n\n{lines}\n\nGrades: {grades}."


PARAMETERS = """seed = 0  # the same seed gives the same run
live = None  # None: a live page in JupyterLab, a replaying page elsewhere
fast = True  # claims at their small setting; False takes longer"""
OPEN = """from workbench import open_study

study = open_study("{slug}", seed=seed, live=live{knobs})
study"""
FIGURES = """## What it came to

Every figure is computed from the run's list of events, which is yours too: `study.log`."""
MAPS = """## When is this paper right?

Each claim's figure over the knob that it rests on: shaded where it holds, with what is needed, what
the paper says, and where the default and the paper stand."""
SHOW = """from bokeh.io import output_notebook, show

output_notebook(hide_banner=True)"""
CLAIMS = """for verdict in study.check(fast=fast):
    claim, outcome = verdict.claim, verdict.outcome
    print("holds" if outcome.holds else "NO   ", "|", claim.grade, "|", claim.sentence)
    print("       expected:", outcome.expected)
    print("       found:   ", outcome.measured)
    print("       finding: ", claim.told(outcome), "|", verdict.why)
    if outcome.caution:
        print("       caution: ", outcome.caution)"""
