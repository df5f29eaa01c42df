"""What a single key may not be: every key is tried with every wrong type, and at and past its bounds."""

import sys
import zoneinfo

import pytest
from config_kit import AGENT, MAILBOX, loaded, problem, problems

from fdagent.config.keys import Choice, Flag, Location, Many, Number, Text, Whole, declared
from fdagent.config.reference import toml
from fdagent.config.settings import TABLES

EVERY_KEY = [(table, key) for table in TABLES for key in declared(table.settings)]
OF_EVERY_TYPE = {
    "text": '"x y"',
    "blank": '" "',
    "number": "7",
    "fraction": "0.5",
    "huge": "9" * 400,
    "negative": "-1",
    "nan": "nan",
    "infinity": "-inf",
    "flag": "true",
    "date": "2027-01-15",
    "time": "02:00:00",
    "moment": "2027-01-15T09:00:00Z",
    "list": "[1]",
    "lists": "[[]]",
    "table": "{}",
    "tables": "[{}]",
}
TAKEN = {Flag: {"flag"}, Text: {"text"}, Location: {"text"}, Whole: {"number"}, Number: {"number", "fraction"}}


@pytest.mark.parametrize(("table", "key"), EVERY_KEY, ids=lambda at: at.name)
def test_each_key_refuses_every_other_type_and_names_what_it_found(tmp_path, table, key):
    for name, value in OF_EVERY_TYPE.items():
        if name in TAKEN.get(type(key.key.kind), ()):
            continue
        sentences = problems(tmp_path, f"{table.header}\n{key.name} = {value}\n")
        about = [one for one in sentences if f"{table.header} " in one and f" {key.name}: " in one]
        assert about, (value, sentences)
        assert "missing" not in about[0]
        assert any(word in about[0] for word in ("expected", "found", "is ", "has ")), about


@pytest.mark.parametrize(
    ("table", "key"), [(t, k) for t, k in EVERY_KEY if isinstance(k.key.kind, Whole | Number)], ids=lambda at: at.name
)
def test_each_number_is_taken_at_its_bounds_and_refused_past_them(tmp_path, table, key):
    kind = key.key.kind
    for value, fits in ((kind.low, True), (kind.high, True), (kind.low - 0.01, False), (kind.high + 1, False)):
        written = toml(int(value) if isinstance(kind, Whole) and fits else value)
        sentences = problems(tmp_path, f"{table.header}\n{key.name} = {written}\n")
        out_of_range = [one for one in sentences if f"{key.name}: found" in one and " to " in one]
        assert bool(out_of_range) is not fits, (value, sentences)


def test_true_is_no_number_and_one_is_no_flag(tmp_path):
    assert problem(tmp_path, AGENT + "concurrency = true") == (
        "[agent] concurrency: found true, expected a whole number from 1 to 64."
    )
    assert problem(tmp_path, AGENT + "[pipeline]\nenabled = 1") == (
        "[pipeline] enabled: found 1, expected true or false."
    )


def test_five_point_zero_is_no_whole_number(tmp_path):
    assert "found 5.0, expected a whole number" in problem(tmp_path, AGENT + "concurrency = 5.0")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
def test_what_is_no_finite_number_is_refused_wherever_fractions_are_taken(tmp_path, value):
    assert "expected a number from 0.01 to 168" in problem(tmp_path, AGENT + f"max_job_hours = {value}")


def test_all_problems_come_at_once(tmp_path):
    text = '[agent]\nname = "a b"\nconcurrency = 0\npoll_second = 3\n[retry]\nmax_attempts = "3"\n[schedul]\n'
    assert [one.split(": ")[0] for one in problems(tmp_path, text)] == [
        "agent.toml, schedul",
        "agent.toml, [agent] poll_second",
        "agent.toml, [agent] name",
        "agent.toml, [agent] project",
        "agent.toml, [agent] environments",
        "agent.toml, [agent] concurrency",
        "agent.toml, [retry] max_attempts",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[shedule]\n", "shedule: unknown key; did you mean `schedule`?"),
        ("[retry]\nmax_atempts = 3\n", "[retry] max_atempts: unknown key; did you mean `max_attempts`?"),
        ("[retry]\nCONCURRENCY = 3\n", "[retry] CONCURRENCY: unknown key; known: backoff_seconds, max_attempts, max_backoff_seconds."),
        ("[retry]\nconcurrency = 3\n", "[retry] concurrency: unknown key; it is a key of [agent]."),
        ("[[incidents.routes]]\n", "[incidents] routes: unknown key; did you mean `route`?"),
        ("[alerts]\nescalate_to = 'x'\n", "[alerts] escalate_to: unknown key; it is a key of [incidents]."),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_the_nearest_one(tmp_path, text, sentence):
    assert problem(tmp_path, AGENT + text) == sentence


def test_many_unknown_keys_are_counted_and_not_all_named(tmp_path):
    text = "[retry]\n" + "".join(f"x{number} = 1\n" for number in range(25))
    sentences = problems(tmp_path, AGENT + text)
    assert len(sentences) == 21
    assert sentences[-1] == "agent.toml, [retry]: has 5 more unknown keys."


def test_very_many_problems_are_counted_and_not_all_named(tmp_path):
    sentences = problems(tmp_path, AGENT + "[[schedule]]\n" * 1_200)
    assert len(sentences) == 201
    assert sentences[0] == "agent.toml, [[schedule]]: stands there 1200 times; 1000 are allowed."
    assert sentences[-1].startswith("agent.toml: has 2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent = 3", "agent: found 3, expected a table, written as [agent]."),
        ("agent = []", "agent: found an empty list, expected a table, written as [agent]."),
        (f"{AGENT}[schedule]\nid = 'x'", "schedule: found a table, expected tables written as [[schedule]]."),
        (f"schedule = [1]\n{AGENT}", "schedule: found a list, expected tables written as [[schedule]]."),
        (
            f"{AGENT}[incidents]\nroute = 'x'",
            '[incidents] route: found "x", expected tables written as [[incidents.route]].',
        ),
        (f"{AGENT}[[pipeline]]", "pipeline: found a list, expected a table, written as [pipeline]."),
    ],
)
def test_what_is_no_table_where_one_belongs_is_one_problem(tmp_path, text, sentence):
    assert problem(tmp_path, text) == sentence


def test_a_schedule_is_named_by_its_number_and_its_id(tmp_path):
    text = (
        AGENT
        + '[[schedule]]\nid = "a"\nenv = "dev"\ndaily = ["02:00"]\n[[schedule]]\nid = "b"\nenv = "dev"\ndaily = ["2:00"]'
    )
    assert problem(tmp_path, text) == (
        '[[schedule]] 2 (b) daily: "2:00" is no time of day from "00:00" to "23:59", such as "06:30".'
    )


@pytest.mark.parametrize("name", ["", "a b", "..", ".a", "a.", "a/b", "a\\\\b", "con", "LPT1.x", "é", "x" * 65])
def test_a_name_is_an_id_that_may_be_part_of_a_path(tmp_path, name):
    assert problem(tmp_path, AGENT + f'name = "{name}"').startswith("[agent] name: ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"dev"', 'expected a list such as ["prod"]'),
        ("[]", "found an empty list"),
        ('["dev", "Dev"]', 'names "Dev" twice'),
        ('["dev", 3]', "item 2: found 3"),
        ('["dev", "a b", "c d"]', 'item 3: "c d" has a character'),
        (str([f"e{n}" for n in range(1001)]).replace("'", '"').replace(", ", ",\n"), "found 1001 items"),
    ],
)
def test_environments_are_a_list_of_different_ids(tmp_path, value, words):
    sentences = problems(tmp_path, f'[agent]\nproject = "p"\nenvironments = {value}')
    assert any(words in one for one in sentences), sentences
    assert all("[agent] environments: " in one for one in sentences)


@pytest.mark.parametrize("key", ["entities", "daily", "weekly"])
def test_an_empty_list_is_refused_where_it_would_mean_nothing_or_everything(tmp_path, key):
    sentences = problems(tmp_path, AGENT + f'[[schedule]]\nid = "a"\nenv = "dev"\n{key} = []')
    assert any("found an empty list, which would mean nothing" in one for one in sentences)


@pytest.mark.parametrize("clock", ["2:00", "24:00", "02:60", "02:00:00", "0200", "02.00", " 02:00", "２2:00", "-1:00"])
def test_a_time_of_day_has_two_digits_each(tmp_path, clock):
    text = AGENT + f'[[schedule]]\nid = "a"\nenv = "dev"\ndaily = ["{clock}"]'
    assert "is no time of day" in problem(tmp_path, text)


@pytest.mark.parametrize("moment", ["06:00", "monday 06:00", "mon", "mon  06:00", "mon 6:00", "06:00 mon", "mo 06:00"])
def test_a_time_of_the_week_is_a_short_day_and_a_time(tmp_path, moment):
    text = AGENT + f'[[schedule]]\nid = "a"\nenv = "dev"\nweekly = ["{moment}"]'
    assert "is no day and time" in problem(tmp_path, text)


def test_a_time_written_as_a_toml_time_is_said_to_be_one(tmp_path):
    text = AGENT + '[[schedule]]\nid = "a"\nenv = "dev"\ndaily = [02:00:00]'
    assert problem(tmp_path, text) == "[[schedule]] 1 (a) daily: found 02:00:00, expected a time of day."


@pytest.mark.parametrize("span", ["22:00", "22:00-22:00", "22-06", "22:00 - 06:00", "22:00-25:00", "off"])
def test_quiet_hours_are_a_span_of_the_day(tmp_path, span):
    assert problem(tmp_path, AGENT + f'[incidents]\nquiet_hours = "{span}"').startswith("[incidents] quiet_hours: ")


@pytest.mark.parametrize("size", ["512", "512 megabytes", "-1GB", "80%", "100MB", "0GB", "1e3MB", "9999999GB", ""])
def test_a_memory_limit_is_an_amount_the_engine_can_work_with(tmp_path, size):
    assert problem(tmp_path, AGENT + f'memory_limit = "{size}"').startswith("[agent] memory_limit: ")


@pytest.mark.parametrize("size", ["512MB", "4GB", "128MiB", "1.5 GiB", "2tb", "200000KB"])
def test_a_memory_limit_takes_decimal_and_binary_units(tmp_path, size):
    assert loaded(tmp_path, AGENT + f'memory_limit = "{size}"').agent.memory_limit == size


@pytest.mark.parametrize(
    "path", ["~/project", "$HOME/project", "${HOME}", "%ProgramData%\\\\x", " ", "a\\u0000b", "x" * 501]
)
def test_a_path_is_taken_as_it_is_and_has_nothing_to_expand(tmp_path, path):
    text = f'[agent]\nproject = "{path}"\nenvironments = ["dev"]'
    assert problem(tmp_path, text).startswith("[agent] project: ")


def test_a_windows_path_with_an_escape_in_it_is_explained(tmp_path):
    text = '[agent]\nproject = "C:\\new"\nenvironments = ["dev"]'
    assert "between 'single quotes'" in problem(tmp_path, text)


@pytest.mark.parametrize(
    "address",
    ["http://onelake.example", "ftp://x", "x", "https://", "https://u@h", "https://h?x=1", "https://h#x", "https://h:0",
     "https://h:99999", "https://[::1", "https://a b", "http://127.0.0.1.example.com"],
)  # fmt: skip
def test_an_endpoint_is_https_unless_it_is_this_machine(tmp_path, address):
    assert problem(tmp_path, AGENT + f'[onelake]\nblob_endpoint = "{address}"').startswith("[onelake] blob_endpoint: ")


@pytest.mark.parametrize(
    "address", ["https://localhost:8443", "https://h.example", "http://[::1]:1", "http://localhost"]
)
def test_an_endpoint_may_be_this_machine(tmp_path, address):
    assert loaded(tmp_path, AGENT + f'[onelake]\nblob_endpoint = "{address}/"').onelake.blob_endpoint == address


@pytest.mark.parametrize("address", ["https://h/path", "http://localhost", "login.microsoftonline.com"])
def test_an_authority_is_https_without_a_path(tmp_path, address):
    text = AGENT + f'[identity]\nkind = "user"\nauthority = "{address}"'
    assert problem(tmp_path, text).startswith("[identity] authority: what was found is ")


@pytest.mark.parametrize(
    "prefix",
    ["abfss://host", "az://{workspace}/{workspace}", "s3://{workspace}", "az://{workspace}/", "az://{workspace}{x}"],
)
def test_a_table_url_prefix_names_the_workspace_once(tmp_path, prefix):
    assert "is no table URL prefix" in problem(tmp_path, AGENT + f'[onelake]\ntable_url_prefix = "{prefix}"')


@pytest.mark.parametrize("word", ["silver/orders", "silver orders", "'x'", "a;b"])
def test_an_entity_is_a_name_or_a_glob(tmp_path, word):
    text = MAILBOX + f'entities = ["{word}"]'
    assert "is no entity" in problem(tmp_path, text)


def test_a_choice_is_said_with_the_nearest_word(tmp_path):
    assert problem(tmp_path, MAILBOX + 'claim = "when free"') == (
        '[pipeline] claim: found "when free", expected "always" or "when_free"; did you mean `when_free`?'
    )


@pytest.mark.parametrize(
    "zone", ["Europe/Berln", "europe", "Europe", "+02:00", "UTC+2", "W. Europe Standard Time", "../../etc/passwd",
             "/etc/localtime", "localtime", "posixrules", "Factory", "x" * 500, "Europe/Berlin ", "", "Zürich"]
)  # fmt: skip
def test_a_time_zone_is_one_of_the_tz_database(tmp_path, zone):
    sentence = problem(tmp_path, AGENT + f'time_zone = "{zone}"')
    assert sentence.startswith("[agent] time_zone: ")
    assert "is no time zone of the tz database" in sentence


def test_a_misspelt_time_zone_is_said_with_the_nearest_one(tmp_path):
    assert problem(tmp_path, AGENT + 'time_zone = "Europe/Berln"').endswith("did you mean `Europe/Berlin`?")


def test_missing_time_zone_data_are_said_to_be_missing_and_never_taken_for_utc(tmp_path, monkeypatch):
    for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
        monkeypatch.setitem(sys.modules, name, None)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    try:
        sentence = problem(tmp_path, AGENT + 'time_zone = "Europe/Berlin"')
    finally:
        zoneinfo.reset_tzpath(to=before)
    assert "has no tz database" in sentence
    assert "package `tzdata`" in sentence


@pytest.mark.parametrize(("table", "key"), EVERY_KEY, ids=lambda at: at.name)
def test_each_declaration_is_whole(table, key):
    kind = key.key.kind
    assert key.key.meaning.endswith(".")
    assert kind.expected
    said: list[str] = []
    if key.key.required:
        assert key.key.example
    elif not key.key.unset:
        value = list(key.default) if isinstance(key.default, tuple) else key.default
        assert kind.read(value, said.append) == key.default
    assert said == []
    assert isinstance(kind, Choice | Flag | Location | Many | Number | Text | Whole)
