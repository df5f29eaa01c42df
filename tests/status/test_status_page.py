"""What the status page shows, and how it looks in terminals of some sizes."""

import json

import pytest
from status_kit import Later

from fdagent.cli.live import Frame, Watching, bar
from fdagent.daemon.home import taken
from fdagent.errors import ConfigError, GaveUp
from fdagent.fleet.due import Times
from fdagent.queue.db import NAME, Database
from models.job import JobFacts
from models.times import stamp

ERROR = "silver.orders: accepted(status) found 2 rows, which is more than none. Correct the rows, or the check."
SCHEDULE = '[[schedule]]\nid = "nightly"\nenv = "dev"\ndaily = ["02:30"]\ntime_zone = "Europe/Berlin"\n'
GONE = 2**22 + 1


@pytest.fixture
def busy(home):
    """Of everything one."""
    home.ended("a" * 12)
    home.ended("b" * 12, "fail", error=ERROR)
    home.running("c" * 12)
    home.queued("d" * 12, not_before=home.clock.wall() + 250)
    home.config = home.agent_toml(SCHEDULE)
    return home


@pytest.mark.parametrize("width", [60, 80, 140, 200])
def test_every_id_state_and_table_that_runs_is_whole_at_any_width(busy, width):
    lines = busy.lines(width, config=busy.config)
    text = "\n".join(lines)
    for word in ("a" * 12, "b" * 12, "c" * 12, "d" * 12, "succeeded", "failed", "running", "nightly", "1,204,000 rows"):
        assert word in text
    assert "2 of 4 tables, 1 failed" in text
    assert "silver.orders" in text
    assert max(len(line.rstrip()) for line in lines if "home" not in line) <= width
    assert ERROR in " ".join(text.split())


def test_the_live_page_fits_the_terminal(busy):
    for number in range(8):
        busy.ended(f"more{number}", "fail", error=ERROR * 3)
        busy.told("warning", "presence", f"Something {number} is wrong. {ERROR}")
    for width, height in [(40, 10), (80, 24), (140, 40), (80, 5), (20, 3)]:
        lines = busy.lines(width, height, busy.config)
        assert len(lines) <= height
        assert max(len(line.rstrip()) for line in lines) <= width
        assert "c" * 12 in "\n".join(lines) or height < 20


def test_the_live_page_shows_only_the_first_of_what_waits_and_counts_the_rest(home):
    for number in range(30):
        home.queued(f"job{number:02}")
    text = "\n".join(home.lines(80, 40))
    assert "Waiting (30)" in text
    assert "and 25 more" in text
    assert "and 10 more" in "\n".join(home.lines(80))


def test_a_waiting_job_says_when_it_is_due_and_why_it_was_put_back(home):
    job = home.running("x" * 12, tables={})
    jobs = home.jobs()
    jobs.finish(job, "retry", JobFacts(believed=True, error="The table was busy.", retryable=True, wait_seconds=250))
    jobs.database.close()
    text = "\n".join(home.lines(120))
    assert "attempt 2 of 3" in text
    assert "(in 4 min" in text
    assert "The table was busy." in text


def test_what_a_job_says_can_not_command_the_terminal(home):
    home.ended("a" * 12, "fail", error="\x1b[2Jgone", entities=("silver.\x1b[31mred",))
    text = "\n".join(home.lines(120))
    assert "\x1b[2J" not in text
    assert "\x1b[31m" not in text
    assert "\\x1b[2Jgone" in text


def test_colours_are_for_terminals_and_every_one_stands_beside_a_word(busy):
    said = busy("status", "--config", busy.config).out
    assert "\x1b" not in said
    for word in ("succeeded", "failed", "running", "does not run"):
        assert word in said
    assert ERROR in said, "whole, in one line"


def test_a_home_that_is_not_there_is_not_made_by_looking_at_it(home):
    for words in (["status"], ["status", "--json"], ["status", "--search", "x"]):
        home(*words)
    home("status", "--health", code=1)
    home("status", "--config", home.agent_toml(SCHEDULE))
    assert not home.path.exists()
    assert "The queue is empty. Ask for a run with `fdagent enqueue ENV`." in home("status").out


def test_a_look_changes_no_row(busy):
    before = [tuple(row) for row in busy.jobs().database.rows("select * from job")]
    busy("status", "--config", busy.config)
    assert [tuple(row) for row in busy.jobs().database.rows("select * from job")] == before


# Warnings


def kinds(home, config=""):
    return {warned.kind: warned.sentence for warned in home.look(config).warnings}


def test_without_an_agent_what_waits_is_a_warning_and_an_empty_home_is_not(home):
    assert kinds(home) == {}
    home.queued("a")
    assert "so what waits is not begun: start it with `fdagent run`" in kinds(home)["no_agent"]


def test_without_an_agent_no_schedule_runs(home):
    assert "no schedule is run" in kinds(home, home.agent_toml(SCHEDULE))["no_agent"]


def test_with_an_agent_there_is_no_such_warning(home):
    home.queued("a")
    with taken(home.path, home.clock):
        assert kinds(home) == {}
        assert " runs (pid " in home.lines(80)[0]
        home("drain")
        assert "is stopping" in home.lines(80)[0]


def test_the_logs_warnings_of_the_last_hour_are_told_once_each_newest_first(home):
    home.told("warning", "presence", "Too old.", Later(-3700))
    home.told("info", "job", "No warning.")
    for _ in range(3):
        home.told("warning", "presence", "The store can't be reached.")
    home.told("error", "duty_failed", "Mail failed.")
    with (home.path / "logs" / "agent.1.log").open("a") as log:
        log.write('{"level": "warning", half a li\n[1]\n"x"\n')
    found = home.look().warnings
    assert [(warned.sentence, warned.times) for warned in found] == [
        ("Mail failed.", 1),
        ("The store can't be reached.", 3),
    ]
    assert "(3 times)" in "\n".join(home.lines(80))


def test_a_long_log_is_read_only_at_its_end(home):
    (home.path / "logs").mkdir(parents=True)
    line = json.dumps({"ts": stamp(home.clock.wall()), "level": "info", "event": "x", "message": "x" * 200}) + "\n"
    (home.path / "logs" / "agent.1.log").write_text(line * 5000)
    home.told("warning", "presence", "At the end.")
    assert [warned.sentence for warned in home.look().warnings] == ["At the end."]


def test_a_queue_that_was_put_aside_is_told_as_long_as_it_lies_there(home):
    home.path.mkdir()
    kept = home.path / "queue.damaged-20270115T090000Z.sqlite3"
    kept.write_bytes(b"x")
    assert kept.name in kinds(home)["queue_put_aside"]
    kept.unlink()
    assert kinds(home) == {}


def test_run_log_rows_that_wait_long_are_told(home):
    home.clock = Later(-1000)
    home.ended("a", rows=("{}", "{}"))
    assert kinds(home) == {}
    home.clock = Later(0)
    assert kinds(home)["run_log_late"].startswith("2 run-log rows wait to be written since ")


def test_a_job_whose_worker_is_gone_is_told(home):
    home.running("a" * 12, pid=GONE)
    assert "The worker of job aaaaaaaaaaaa is gone" in kinds(home)["worker_gone"]


def test_a_schedule_with_an_unknown_zone_is_told(home, monkeypatch):
    config = home.agent_toml(SCHEDULE)

    def unknown(*_):
        raise ConfigError("Time zone Europe/Berlin is not known here.", fix="Install tzdata.")

    monkeypatch.setattr(Times, "next_after", unknown)
    assert kinds(home, config)["schedule"].startswith("Schedule nightly is not run: Time zone")
    assert "not run, see above" in "\n".join(home.lines(80, config=config))


# Live


def test_a_watcher_reads_anew_only_when_something_changed(home):
    home.queued("a" * 12)
    sight = home.sight()
    looks = []
    look = sight.look
    sight.look = lambda: looks.append(1) or look()
    watching = Watching(sight, home.clock)
    for _ in range(5):
        watching.page(Frame(80, 24))
    assert len(looks) == 1
    home.queued("b" * 12)
    assert "b" * 12 in "\n".join(line.plain for line in watching.page(Frame(80, 24)))
    assert len(looks) == 2
    sight.close()


def test_a_watcher_sees_a_queue_that_comes_and_one_that_takes_anothers_place(home):
    sight = home.sight()
    watching = Watching(sight, home.clock)

    def text():
        return "\n".join(line.plain for line in watching.page(Frame(80, 24)))

    assert "queue is empty" in text()
    home.queued("a" * 12)
    assert "a" * 12 in text()
    for part in ("", "-wal", "-shm"):
        (home.path / f"{NAME}{part}").rename(home.path / f"old{part}") if (
            home.path / f"{NAME}{part}"
        ).exists() else None
    home.queued("b" * 12)
    assert "b" * 12 in text()
    assert "a" * 12 not in text()
    sight.close()


def test_a_watcher_says_what_it_can_not_read_and_goes_on(home, monkeypatch):
    home.queued("a" * 12)
    sight = home.sight()
    watching = Watching(sight, home.clock)
    watching.page(Frame(80, 24))

    def locked(*_):
        raise GaveUp("The queue was locked.", fix="Wait.")

    with monkeypatch.context() as patched:
        patched.setattr(Database, "change", locked)
        first, *rest = watching.page(Frame(80, 24))
        assert "The queue was locked." in first.plain
        assert "a" * 12 in "\n".join(line.plain for line in rest)
    assert "locked" not in watching.page(Frame(80, 24))[0].plain
    sight.close()


def test_a_bar_has_all_its_cells_whatever_is_counted():
    for done in range(20):
        for failed in range(5):
            counts = {"done": done, "failed": failed, "other": 1, "running": 2, "waiting": 3}
            assert bar(counts, 24, blocks=True).cell_len == 24
            assert bar(counts, 24, blocks=False).plain.isascii()
    assert bar({"done": 1, "waiting": 1}, 10, blocks=True).plain == "█████░░░░░"
