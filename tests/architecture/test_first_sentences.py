"""A module's first sentence has a word the field knows: a name it defines, its own, or a term.

A floor, no more: whether the sentence is a good one is for people to judge.
"""

import ast
import re

from tests.architecture.sources import file_of, sources

GLOSSARY = """
attention autograd backend backward bandwidth batch bubble cache canvas checkpoint circle claim
clock cluster collective config convolution cost decode decoder decoding device driver embedding
event evict eviction executor feed-forward flop fold forward gate gradient graph kernel knob
latency layer link log loss matmul matrix memory mesh model norm notebook operator optimizer page
pass pipeline plan policy prefill prefix preference product prompt queue rank reduce replica
request roof roofline rotation run sampling schedule scheduler sequence softmax span stage step
study table tensor thread throughput token tokenizer topology trace traffic training transformer
variant vector verifier view weight widget
"""
LEAST = 3  # letters of a word that counts

SAYS_NOTHING: set[str] = set()  # modules whose first sentence has no such word yet


def words(text: str) -> set[str]:
    """The words of a text or a name, in lower case and without a plural's s."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
    whole = re.findall(r"[A-Za-z]+", text)
    return {w.lower().removesuffix("s") for w in (*parts, *whole) if len(w) >= LEAST}


def first_sentence(tree: ast.Module) -> str:
    text = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    return re.split(r"[.](?:\s|$)", text.replace("\n", " "))[0]


def known(module: str, tree: ast.Module) -> set[str]:
    """Words that say what a module is."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in tree.body if isinstance(node, kinds)]
    return words(" ".join([*module.split(".")[-2:], *names, GLOSSARY]))


def says_nothing(module: str, tree: ast.Module) -> bool:
    sentence = first_sentence(tree)
    return not words(sentence) & known(module, tree)


def test_first_sentences_name_what_the_field_knows():
    found = {
        module
        for module, tree in sources().items()
        if file_of(module).name != "__init__.py" and says_nothing(module, tree)
    }
    fresh = {module: first_sentence(sources()[module]) for module in found - SAYS_NOTHING}
    assert not fresh, f"say first what a newcomer would look for, then the rest: {fresh}"
    gone = SAYS_NOTHING - found
    assert not gone, f"mended since: delete from SAYS_NOTHING in {__file__}: {sorted(gone)}"


def test_the_check_says_no_to_a_riddle():
    door = ast.parse('"""Who may come in, and who waits outside."""\nclass Admission: ...')
    assert says_nothing("engine.inference.admission", door)
    said = ast.parse('"""Admission control: who joins."""\nclass Admission: ...')
    assert not says_nothing("engine.inference.admission", said)
    assert says_nothing("engine.core.log", ast.parse("x = 1"))
