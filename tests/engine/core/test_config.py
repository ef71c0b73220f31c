"""Config and knobs: bounds hold, choices are found by folder, faults are one line."""

from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.config import (
    Choice,
    Config,
    Policy,
    from_dict,
    kinds,
    knob,
    knobs,
    renamed,
    to_dict,
    update,
)
from engine.core.errors import BadInput


class Fruit(Policy):
    """A base whose kinds are defined below; its folder holds no modules of fruit."""

    folder: ClassVar[str] = "engine.core"


class Apple(Fruit):
    kind: Literal["apple"] = "apple"
    weight: float = knob(0.2, "how heavy", low=0.0, high=2.0, unit="kg")


class Inner(Config):
    depth: int = knob(2, "levels", low=1, high=8)
    width: int = knob(1, "columns", low=1, high=8)


class Pear(Fruit):
    kind: Literal["pear"] = "pear"
    ripe: bool = knob(True, "whether it can be eaten")
    seeds: Inner = knob(Inner(depth=3, width=5), "how they lie")


class Basket(Config):
    count: int = knob(3, "how many", low=1, high=10, unit="pieces")
    fruit: Choice[Fruit] = knob(make=Apple, doc="what")
    inner: Inner = knob(make=Inner, doc="nested")
    limit: float | None = knob(None, "no more than this", low=0.0)
    mode: Literal["calm", "fast"] = knob("calm", "pace", group="more")


def test_kinds_are_found_without_a_list():
    assert kinds(Fruit) == {"apple": Apple, "pear": Pear}


def test_knobs_carry_bounds_unit_and_doc_in_field_order():
    found = {k.path: k for k in knobs(Basket())}
    assert list(found)[:3] == ["count", "fruit", "fruit.weight"]
    assert list(found)[3:] == ["inner.depth", "inner.width", "limit", "mode"]
    assert (found["count"].low, found["count"].high, found["count"].unit) == (1, 10, "pieces")
    assert found["fruit"].choices == ("apple", "pear")
    assert found["mode"].choices == ("calm", "fast") and found["mode"].group == "more"
    assert (
        all(k.doc for k in found.values() if k.path != "fruit.weight") and found["limit"].low == 0
    )


def test_update_sets_nested_values_and_switches_kinds():
    basket = update(Basket(), {"count": "5", "fruit.weight": 0.5, "inner.depth": 4})
    assert (basket.count, basket.fruit.weight, basket.inner.depth) == (5, 0.5, 4)
    assert update(basket, {"fruit": "pear", "fruit.ripe": False}).fruit == Pear(ripe=False)
    assert update(basket, {"fruit": "apple"}).fruit.weight == 0.5  # same kind keeps its settings
    assert Basket().count == 3


def test_a_new_kind_can_be_chosen_and_set_deeply_at_once():
    fruit = update(Basket(), {"fruit.seeds.depth": 8, "fruit": "pear"}).fruit
    assert fruit.seeds == Inner(depth=8, width=5)  # the field's own defaults, not the class's


def test_a_choice_survives_being_written_with_its_kind():
    basket = Basket(fruit=Pear(ripe=False))
    written = to_dict(basket)["fruit"]
    assert (written["kind"], written["ripe"], written["seeds"]["depth"]) == ("pear", False, 3)
    assert from_dict(Basket, to_dict(basket)) == basket
    assert Basket.model_validate_json(basket.model_dump_json()) == basket


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"count": 11}, "'count'"),
        ({"count": "many"}, "'count'"),
        ({"count": "1_0"}, "knob 'count': '1_0' is no number; write it without underscores"),
        ({"limit": "1_0.5"}, "underscores"),
        ({"fruit": "apple", "fruit.weight": "0_1"}, "underscores"),
        ({"count.size": 1}, "no such knob"),
        ({"colour": "red"}, "count, fruit"),
        ({"fruit": "stone"}, "apple, pear"),
        ({"fruit": {"kind": "apple", "weight": 9}}, "less than or equal to 2"),
        ({"fruit.colour": "red"}, "no such knob"),
        ({"inner.heigth": 2}, "no such knob; one of: inner.depth, inner.width"),
        ({"inner.dept": 2}, "no such knob; did you mean inner.depth?"),
        ({"limit": float("nan")}, "'limit'"),
        ({"mode": "slow"}, "'calm' or 'fast'"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it(changes, says):
    with pytest.raises(BadInput) as fault:
        update(Basket(), changes)
    assert says in str(fault.value) and "\n" not in str(fault.value)


@given(
    st.dictionaries(
        st.text(max_size=12), st.one_of(st.none(), st.text(), st.integers(), st.floats())
    )
)
def test_whatever_is_set_gives_a_config_or_one_line(changes):
    try:
        basket = update(Basket(), changes)
    except BadInput as fault:
        assert "\n" not in str(fault)
    else:
        assert 1 <= basket.count <= 10


def test_none_is_no_value_or_the_word():
    class Kept(Config):
        limit: int | None = knob(3, "most, or no limit")
        again: Literal["none", "full"] = knob("full", "what is computed again")

    both = update(Kept(), {"limit": None, "again": "none"})
    assert (both.limit, both.again) == (None, "none")
    assert update(Kept(), {"again": None}).again == "none"
    with pytest.raises(BadInput, match="limit"):
        update(Kept(), {"limit": "many", "again": None})


class Cloth(Policy):
    """A base whose folder is one module: this one."""

    folder: ClassVar[str] = __name__


class Wool(Cloth):
    kind: Literal["wool"] = "wool"
    aliases: ClassVar = {"thick": "weight"}
    formerly: ClassVar = ("sheep", "yarn")
    weight: float = knob(0.2, "of a metre", low=0.0, high=2.0)


class Merino(Wool):
    kind: Literal["merino"] = "merino"  # type: ignore[assignment]


class Coat(Config):
    aliases: ClassVar = {"material": "cloth", "long": "length"}
    cloth: Choice[Cloth] = knob(make=Merino, doc="what of")
    length: int = knob(3, "how long", low=1, high=10)


def test_a_folder_may_be_one_module():
    assert kinds(Cloth) == {"merino": Merino, "wool": Wool}


def test_what_was_saved_under_older_names_opens():
    saved = {"material": {"kind": "sheep", "thick": 1.5}, "long": 5}
    coat = from_dict(Coat, saved)
    assert coat == Coat(cloth=Wool(weight=1.5), length=5)
    assert to_dict(coat) == {"cloth": {"kind": "wool", "weight": 1.5}, "length": 5}
    assert coat == Coat(material="yarn", long=5).model_copy(update={"cloth": Wool(weight=1.5)})


def test_an_address_of_older_names_sets_the_knobs_of_now():
    coat = update(Coat(), {"material": "sheep", "material.thick": 1.5, "long": "5"})
    assert coat == Coat(cloth=Wool(weight=1.5), length=5)
    assert update(coat, {"material": "yarn"}) == coat  # the same kind keeps its settings
    assert update(coat, {"cloth": "wool"}) == coat
    assert renamed(coat, "material.thick") == ("cloth.weight", 1.5)
    assert renamed(coat, "material.model_fields") == ("cloth.model_fields", None)


def test_older_names_are_not_offered_and_not_inherited():
    assert [knob.path for knob in knobs(Coat())] == ["cloth", "cloth.weight", "length"]
    assert knobs(Coat())[0].choices == ("merino", "wool")
    for changes in ({"colour": 1}, {"cloth": "silk"}):
        with pytest.raises(BadInput, match="one of: "):
            update(Coat(), changes)
    assert isinstance(update(Coat(), {"cloth": "sheep"}).cloth, Wool)
    assert not isinstance(update(Coat(), {"cloth": "sheep"}).cloth, Merino)
