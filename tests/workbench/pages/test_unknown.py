"""Addresses that there is no page for."""

from workbench.pages.frame.unknown import LONGEST, page, study_of

SLUGS = ["flover", "hogwild", "parallelbench"]


def test_systems_of_a_like_name_are_linked():
    assert '<a href="/app/study?slug=hogwild">hogwild</a>' in page("/study/hogwld", SLUGS, "/app")
    assert "Did you mean" not in page("/zzz", SLUGS, "")


def test_what_was_asked_is_text_and_short():
    shown = page("/<script>alert(1)</script>" + "x" * 1000, SLUGS, "")
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    assert len(shown) < 1500 and "x" * LONGEST not in shown


def test_a_systems_bare_name_leads_to_its_study():
    assert study_of("/flover", SLUGS, "") == "/study?slug=flover"
    assert study_of("/app/study/hogwild/", SLUGS, "/app") == "/app/study?slug=hogwild"
    for other in ("/", "/flove", "//evil.example/flover", "/a/flover", "/study", "/flover/x"):
        assert study_of(other, SLUGS, "") == ""
