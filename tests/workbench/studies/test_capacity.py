"""The search for the highest load that is kept."""

import pytest

from workbench.studies.serving._capacity import most


def test_it_is_told_to_the_halvings_within_its_bounds():
    asked = []

    def keeps(load):
        asked.append(load)
        return load <= 5.0

    found = most(keeps, 1.0, 16.0, steps=4, least=0.1)
    assert found <= 5.0 < found * 16 ** (1 / 16) and len(asked) == 4


@pytest.mark.parametrize("own", [0.9, 0.4, 0.03])
def test_who_keeps_less_than_the_lowest_load_is_not_given_it(own):
    """Capacity was once called 1.0 wherever nothing above it was kept."""
    found = most(lambda load: load <= own, 1.0, 16.0, steps=4, least=0.01)
    assert found <= own < found * 16 ** (1 / 16)


def test_the_lowest_load_is_kept_where_it_is_and_the_search_ends():
    assert most(lambda load: load <= 1.0, 1.0, 16.0, steps=4, least=0.1) == 1.0
    assert most(lambda load: False, 1.0, 16.0, steps=4, least=0.1) == 0.1
    assert most(lambda load: False, 1.0, 16.0, steps=4, least=1.0) == 1.0
