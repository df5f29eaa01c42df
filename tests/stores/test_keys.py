from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fdagent.errors import BadKey
from fdagent.stores.keys import check_key, split_prefix


@settings(deadline=None)
@given(st.one_of(st.text(max_size=30), st.text(alphabet="ab./\\%-_:~ \0\n", max_size=30)))
@example("..")
@example("a/../b")
@example("a/..")
@example("...")
@example("CON.json")
@example("a\u2215b")
def test_a_key_that_passes_names_one_file_below_the_root_on_every_system(key):
    try:
        check_key(key)
    except BadKey:
        return
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind("root") / key
        assert path.parts[0] == "root"
        assert path.parts[1:] == tuple(key.split("/"))
        assert ".." not in path.parts
        assert not kind(key).is_absolute()
    assert not PureWindowsPath(key).is_reserved()
    assert key.isascii()
    assert "%" not in key
    assert not any(part.endswith((".", " ")) or part.startswith(".") for part in key.split("/"))


@settings(deadline=None)
@given(st.text(alphabet="ab-_.1", min_size=1, max_size=20))
def test_every_beginning_of_a_key_is_a_prefix_that_can_be_asked_for(name):
    key = f"status/{name}"
    try:
        check_key(key)
    except BadKey:
        return
    for end in range(len(key) + 1):
        folder, start = split_prefix(key[:end])
        assert folder + start == key[:end]


@pytest.mark.parametrize("name", ["con", "NUL.json", "com1", "LpT9.a.b", "aux.", "prn"])
def test_a_windows_device_is_refused_whatever_follows_its_dot(name):
    with pytest.raises(BadKey):
        check_key(f"status/{name}")


@pytest.mark.parametrize("name", ["console.json", "com10.json", "nul-1.json", "auxiliary", "lpt"])
def test_a_name_that_only_begins_like_a_device_is_taken(name):
    assert check_key(f"status/{name}") == f"status/{name}"


def test_the_longest_lease_of_two_ids_fits_and_one_more_than_the_limit_does_not():
    assert check_key(f"leases/{'a' * 64}.{'b' * 64}.json")
    with pytest.raises(BadKey, match="141 characters"):
        check_key(f"leases/{'a' * 141}")


def test_a_bad_key_is_shown_cut_and_without_control_characters():
    with pytest.raises(BadKey) as caught:
        check_key("\x1b[2J" + "x" * 5000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600
