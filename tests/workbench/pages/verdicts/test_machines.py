"""What a timed claim's card says of this machine and of others."""

from workbench.catalogue import study
from workbench.finding import Figure
from workbench.pages.verdicts.claims import claim_card
from workbench.pages.verdicts.verdicts import Standing
from workbench.study import here

ROW = {"figure": Figure.exact(0.5, "×").row(), "needed": 1.0, "holds": False, "fast": False}


def test_a_timed_claim_says_what_is_recorded_of_this_machine_and_of_others():
    claim = study("flash-attention-2").claim("not-slower")
    own = {**ROW, "machine": here()}
    other = {**ROW, "machine": "Another, 8 cores", "figure": Figure.exact(3.0, "×").row()}
    facts = dict(claim_card(Standing(claim), False, machines=[own, other])["facts"])
    assert facts["Finding"].startswith(f"recorded as contrary, 0.5 × on {here()}: ")
    assert facts["Elsewhere"] == "reproduced in direction only, 3 × on Another, 8 cores"
    facts = dict(claim_card(Standing(claim), False, machines=[other])["facts"])
    assert facts["Finding"].startswith("known as contrary: ")
