"""Who holds which table, and a lease broken by the op that was seen."""

import json

import pytest
from cli_agent_kit import TABLE

from fdagent.errors import Unknown
from fdagent.fleet.people import break_lease
from fdagent.fleet.records import lease_key
from fdagent.stores.local import LocalStore


def test_nothing_is_held_at_first_and_looking_makes_nothing(desk):
    said = desk("lease", "list", "dev")
    assert (said.code, said.out) == (0, "No table of dev is held.\n")
    assert not (desk.control / "leases").exists()


def test_the_group_alone_shows_its_commands(desk):
    said = desk("lease")
    assert said.code == 2
    assert "break" in said.out
    assert "list" in said.out


def test_a_held_table_is_listed_with_what_breaking_it_needs(desk):
    lease = desk.lease()
    said = desk("lease", "list", "dev")
    for part in (TABLE, "etl-01", "host-1", "job1", "5 min 00 s", "0.0 s ago", "estimate"):
        assert part in said.out, part
    assert desk.op() in said.out
    assert lease.renew()


def test_json_has_the_record_its_age_and_what_seems(desk):
    desk.lease()
    [one] = desk("lease", "list", "dev", "--json").json["leases"]
    assert one["table"] == TABLE
    assert {"op", "agent", "job_id", "seconds", "acquired_at", "contract"} <= one.keys()
    assert 0 <= one["age_seconds"] < 60
    assert one["lapsed_estimate"] is False
    desk.age(lease_key(TABLE), 400)
    [one] = desk("lease", "list", "dev", "--json").json["leases"]
    assert one["lapsed_estimate"] is True


def test_an_age_that_makes_no_sense_is_not_known(desk):
    desk.lease()
    desk.age(lease_key(TABLE), -3600)
    [one] = desk("lease", "list", "dev", "--json").json["leases"]
    assert (one["age_seconds"], one["lapsed_estimate"]) == (None, None)
    assert "?" in desk("lease", "list", "dev").out


def test_a_file_that_is_no_lease_is_named_and_hides_no_other(desk):
    desk.lease()
    desk.file("leases/gold.bad.json", "{")
    desk.file("leases/gold.newer.json", '{"contract": 2, "table": "gold.newer"}')
    desk.file("leases/notes.txt", "not a record")
    answer = desk("lease", "list", "dev", "--json").json
    assert [one["table"] for one in answer["leases"]] == [TABLE]
    assert [one["key"] for one in answer["unreadable"]] == ["leases/gold.bad.json", "leases/gold.newer.json"]
    said = desk("lease", "list", "dev").out
    assert TABLE in said
    assert "leases/gold.bad.json can't be read" in said


def test_what_a_record_says_can_not_command_the_terminal(desk):
    desk.file("leases/gold.x.json", json.dumps({"table": "gold.x", "op": "o", "agent": "\x1b[2Jevil", "seconds": 1}))
    said = desk("lease", "list", "dev").out
    assert "\x1b" not in said
    assert "evil" in said


def test_a_lease_is_broken_by_the_op_it_shows_and_its_holder_finds_out(desk):
    lease = desk.lease()
    said = desk("lease", "break", "dev", TABLE, "--op", desk.op())
    assert said.code == 0
    assert f"Broke the lease of {TABLE} in dev, which etl-01 held for job job1." in said.out
    assert not (desk.control / lease_key(TABLE)).exists()
    assert not lease.renew()
    assert not lease.belief.held()


def test_another_version_than_the_one_that_was_named_stays(desk):
    lease = desk.lease()
    old = desk.op()
    assert lease.renew()
    said = desk("lease", "break", "dev", TABLE, "--op", old)
    assert said.code == 4
    assert f"The lease of {TABLE} was not broken: another version is there than the one that was named." in said.err
    assert lease.renew()


def test_a_lease_that_nobody_holds_is_not_found(desk):
    said = desk("lease", "break", "dev", TABLE, "--op", "x")
    assert said.code == 3
    assert f"Nobody holds a lease of {TABLE}." in said.err


def test_the_maintenance_lease_can_be_broken_too(desk):
    desk.lease("_maintenance")
    assert desk("lease", "break", "dev", "_maintenance", "--op", desk.op("_maintenance")).code == 0


@pytest.mark.parametrize("table", ["../release", "a/b", "", "x" * 200, "silver.orders\n"])
def test_a_name_that_no_table_has_touches_nothing(desk, table):
    said = desk("lease", "break", "dev", table, "--op", "x")
    assert said.code == 2
    assert (desk.control / "release.json").exists()


def test_a_break_without_an_op_is_wrong_usage(desk):
    desk.lease()
    assert desk("lease", "break", "dev", TABLE).code == 2


@pytest.mark.parametrize("words", [("lease", "list", "prod"), ("lease", "break", "prod", TABLE, "--op", "x")])
def test_an_environment_that_is_not_there_is_not_found(desk, words):
    said = desk(*words)
    assert said.code == 3
    assert "no environment `prod`" in said.err


def test_an_environment_in_fabric_is_refused_in_a_sentence(desk):
    (desk.project / "environments.toml").write_text(
        'format = 1\n[dev]\ntarget = "fabric"\nworkspace = "0f8fad5b-d9cb-469f-a165-70867728950e"\n'
        'vars = { landing = "landing" }\n[dev.lakehouses]\n'
        + "".join(
            f'{name} = "0f8fad5b-d9cb-469f-a165-70867728950e"\n'
            for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta")
        )
    )
    said = desk("lease", "list", "dev")
    assert said.code == 2
    assert "fabric" in said.err


def test_a_lost_answer_to_the_delete_still_breaks_it(desk):
    class Lossy:
        """The delete happens, its answer is lost."""

        def __init__(self, store):
            self._store = store

        def __getattr__(self, name):
            return getattr(self._store, name)

        def delete(self, key, condition):
            self._store.delete(key, condition)
            raise Unknown("no answer")

    desk.lease()
    store = LocalStore(desk.control, clock=desk.clock, ids=desk.ids)
    broken = break_lease(Lossy(store), TABLE, op=desk.op(), clock=desk.clock, ids=desk.ids)
    assert broken.agent == "etl-01"
    assert store.read(lease_key(TABLE)) is None
