"""Ids of requests: an empty one is a mistake of the script's, and a used one is refused before it is posted."""

import pytest

from models import codec
from models.status import RequestState, Status


@pytest.mark.parametrize("empty", ["", " ", "\t"])
@pytest.mark.parametrize(
    "words",
    [
        ["request", "dev", "--id"],
        ["request", "dev", "--cancel"],
        ["request", "dev", "--abandon"],
        ["request", "dev", "--op"],
        ["agents", "dev", "--forget"],
        ["schedule", "pause", "nightly", "--until"],
    ],
    ids=" ".join,
)
def test_an_option_with_an_empty_text_is_wrong_usage_and_does_nothing(desk, words, empty):
    said = desk(*words, empty)
    assert (said.code, said.out) == (2, "")
    assert f"Invalid value for {words[-1]}: it is empty, as of a shell variable that is not set." in said.err.replace(
        "'", ""
    )
    assert not (desk.control / "requests").exists()


@pytest.mark.parametrize("again", ["CX", "cx", "Cx", "cX"])
@pytest.mark.parametrize("left", ["request", "status"])
def test_an_id_that_was_used_in_any_letter_case_is_refused_before_it_is_posted(desk, again, left):
    if left == "request":
        assert desk("request", "dev", "--id", "cx").code == 0
    else:
        status = Status(id="cx", env="dev", state=RequestState.SUCCEEDED, op="s1", agent="etl-02", finished_at=1.0)
        desk.file("status/cx.json", codec.dump(status.to_json()).decode())
    said = desk("request", "dev", "--id", again)
    which = "that id is taken" if again == "cx" else "cx, which differs in letter case only, is taken"
    assert (said.code, said.err) == (4, f"Error: Request {again} was not posted: {which}.\nName another with --id.\n")
    assert [one["id"] for one in desk("queue", "dev", "--json").json["requests"]] == ["cx"]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_who_stops_waiting_for_a_request_is_told_that_it_goes_on(desk, monkeypatch, as_json):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("fdagent.system.SystemClock.sleep", interrupted)
    said = desk("request", "dev", "--id", "r1", "--wait", *as_json)
    assert said.code == 130
    assert said.err == "Request r1 goes on: `fdagent request dev --cancel r1` asks that it ends.\n"
    assert (desk.control / "requests/r1.json").exists()
