"""Rules across keys: each is seen kept and broken."""

import fnmatch
from itertools import product

import pytest
from config_kit import AGENT, MAILBOX, loaded, problem, problems
from hypothesis import given
from hypothesis import strategies as st

from fdagent.config.rules import ALLOWED, NEEDED, RULES, covers

GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
IDENTITY_KEYS = {
    "tenant_id": f'"{GUID}"',
    "client_id": f'"{GUID}"',
    "certificate_path": '"agent.pem"',
    "certificate_password_env": '"CERT_PASSWORD"',
    "client_secret_env": '"CLIENT_SECRET"',
    "send_certificate_chain": "true",
    "authority": '"https://login.example"',
}
ALLOWLIST = MAILBOX + 'entities = ["silver.*", "gold.revenue"]\n'


def identity(kind, keys):
    return AGENT + f'[identity]\nkind = "{kind}"\n' + "".join(f"{key} = {IDENTITY_KEYS[key]}\n" for key in keys)


def schedule(times="every_minutes = 15", ident="nightly", env="prod", more=""):
    return f'[[schedule]]\nid = "{ident}"\nenv = "{env}"\n{times}\n{more}\n'


def shared(times="every_minutes = 15", more="", **kw):
    return schedule(times, more="shared = true\n" + more, **kw)


@pytest.mark.parametrize("kind", NEEDED)
def test_an_identity_with_what_it_needs_and_all_it_may_have_loads(tmp_path, kind):
    assert loaded(tmp_path, identity(kind, NEEDED[kind])).identity.kind == kind
    assert loaded(tmp_path, identity(kind, (*NEEDED[kind], *ALLOWED[kind]))).identity.kind == kind


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind in NEEDED for key in NEEDED[kind]])
def test_an_identity_says_which_key_it_lacks(tmp_path, kind, key):
    keys = [other for other in NEEDED[kind] if other != key]
    assert problem(tmp_path, identity(kind, keys)) == f'[identity] {key}: missing, `kind = "{kind}"` needs it.'


@pytest.mark.parametrize(
    ("kind", "key"), [(k, key) for k, key in product(NEEDED, IDENTITY_KEYS) if key not in (*NEEDED[k], *ALLOWED[k])]
)
def test_an_identity_refuses_a_key_of_another_kind(tmp_path, kind, key):
    sentence = problem(tmp_path, identity(kind, [*NEEDED[kind], key]))
    assert sentence.startswith(f"[identity] {key}: is for kind ")
    assert sentence.endswith(f'found `kind = "{kind}"`.')


def test_a_default_that_stands_there_is_no_key_of_another_kind(tmp_path):
    text = AGENT + '[identity]\nsend_certificate_chain = false\nauthority = "https://login.microsoftonline.com"'
    assert loaded(tmp_path, text).identity.kind == "none"


def test_a_kind_that_is_wrong_is_the_only_problem_of_an_identity(tmp_path):
    assert problem(tmp_path, AGENT + '[identity]\nkind = "cert"\ntenant_id = "x.example"').startswith(
        "[identity] kind: "
    )


def test_a_missing_secret_is_not_asked_for_again_when_one_was_refused(tmp_path):
    text = identity("client_secret", ["tenant_id", "client_id"]) + 'client_secret_env = "s3cr3t~value"'
    assert problem(tmp_path, text).startswith("[identity] client_secret_env: ")


@pytest.mark.parametrize(("stale", "fits"), [(60, True), (59, False)])
def test_stale_seconds_are_at_least_two_heartbeats(tmp_path, stale, fits):
    sentences = problems(tmp_path, AGENT + f"status_seconds = 30\nstale_seconds = {stale}")
    assert sentences == ([] if fits else [
        "agent.toml, [agent] stale_seconds: found 59, expected at least twice status_seconds (30)."
    ])  # fmt: skip


@pytest.mark.parametrize(("days", "enabled", "fits"), [(13, True, False), (14, True, True), (1, False, True)])
def test_a_job_is_kept_as_long_as_its_request(tmp_path, days, enabled, fits):
    sentences = problems(tmp_path, AGENT + f"retention_days = {days}\n[pipeline]\nenabled = {str(enabled).lower()}")
    assert (sentences == []) is fits
    assert all("found 13, expected at least the mailbox's 14" in one for one in sentences)


@pytest.mark.parametrize(("longest", "fits"), [(60, True), (59, False)])
def test_the_longest_wait_is_no_shorter_than_the_first(tmp_path, longest, fits):
    sentences = problems(tmp_path, AGENT + f"[retry]\nbackoff_seconds = 60\nmax_backoff_seconds = {longest}")
    assert (sentences == []) is fits


def test_mailboxes_are_of_environments_that_are_run(tmp_path):
    assert problem(tmp_path, MAILBOX + 'environments = ["prod", "prd"]') == (
        '[pipeline] environments: "prd" is not among [agent] environments; did you mean `prod`?'
    )


def test_a_schedule_is_of_an_environment_that_is_run(tmp_path):
    assert problem(tmp_path, AGENT + schedule(env="test")) == (
        '[[schedule]] 1 (nightly) env: "test" is not among [agent] environments; known: dev, prod.'
    )


def test_environments_that_cant_be_read_are_one_problem_and_not_one_a_schedule(tmp_path):
    text = '[agent]\nproject = "p"\nenvironments = "prod"\n' + schedule() + schedule(ident="b")
    assert problem(tmp_path, text).startswith("[agent] environments: ")


@pytest.mark.parametrize("times", ["every_minutes = 0.5", 'daily = ["02:00", "14:00"]', 'weekly = ["mon 06:00"]'])
def test_one_kind_of_time_is_right(tmp_path, times):
    assert problems(tmp_path, AGENT + schedule(times)) == []


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("", "says no time, expected one of every_minutes, daily and weekly"),
        ('every_minutes = 5\ndaily = ["02:00"]', "has every_minutes and daily, expected one of them"),
        ('daily = ["02:00"]\nweekly = ["mon 06:00"]', "has daily and weekly, expected one of them"),
    ],
)
def test_none_or_two_kinds_of_time_are_wrong(tmp_path, times, words):
    assert problem(tmp_path, AGENT + schedule(times)) == f"[[schedule]] 1 (nightly): {words}."


def test_a_time_that_is_wrong_is_not_also_missing(tmp_path):
    assert "every_minutes: found 0, expected a number" in problem(tmp_path, AGENT + schedule("every_minutes = 0"))


@pytest.mark.parametrize("other", ["nightly", "Nightly"])
def test_schedule_ids_are_unique_letter_case_aside(tmp_path, other):
    assert problem(tmp_path, AGENT + schedule() + schedule(ident=other)) == (
        f'[[schedule]] 2 ({other}) id: "{other}" is also that of [[schedule]] 1 (nightly), letter case aside.'
    )


def test_two_schedules_without_an_id_are_not_said_to_have_the_same_one(tmp_path):
    text = AGENT + '[[schedule]]\nenv = "dev"\ndaily = ["02:00"]\n' * 2
    assert all("missing" in one for one in problems(tmp_path, text))
    assert len(problems(tmp_path, text)) == 2


def test_route_names_are_unique_letter_case_aside(tmp_path):
    text = AGENT + "".join(f'[[incidents.route]]\nname = "{name}"\nwebhook_env = "HOOK"\n' for name in ("a", "A"))
    assert '"A" is also that of [[incidents.route]] 1 (a)' in problem(tmp_path, text)


def test_a_schedule_and_a_route_may_have_the_same_name(tmp_path):
    text = AGENT + schedule(ident="x") + '[[incidents.route]]\nname = "x"\nwebhook_env = "HOOK"\n'
    assert problems(tmp_path, text) == []


def test_a_shared_schedule_with_a_mailbox_is_right(tmp_path):
    assert problems(tmp_path, MAILBOX + shared()) == []


def test_a_shared_schedule_needs_the_mailbox(tmp_path):
    assert (
        problem(tmp_path, AGENT + shared()) == "[[schedule]] 1 (nightly) shared: needs `enabled = true` in [pipeline]."
    )


def test_a_shared_schedule_needs_the_mailbox_of_its_own_environment(tmp_path):
    text = MAILBOX + 'environments = ["dev"]\n' + shared()
    assert problem(tmp_path, text) == '[[schedule]] 1 (nightly) shared: needs "prod" among [pipeline] environments.'


@pytest.mark.parametrize(("length", "is_shared", "fits"), [(40, True, True), (41, True, False), (64, False, True)])
def test_a_shared_id_is_part_of_a_requests_id_and_shorter(tmp_path, length, is_shared, fits):
    one = (shared if is_shared else schedule)(ident="x" * length)
    sentences = problems(tmp_path, MAILBOX + one)
    assert (sentences == []) is fits
    assert all("of a shared schedule has 41 characters, 40 are allowed" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("minutes", "fits"), [("1", True), ("15", True), ("2.0", True), ("0.5", False), ("1.5", False)]
)
def test_shared_minutes_are_whole_and_others_need_not_be(tmp_path, minutes, fits):
    times = f"every_minutes = {minutes}"
    assert problems(tmp_path, MAILBOX + schedule(times)) == []
    sentences = problems(tmp_path, MAILBOX + shared(times))
    assert (sentences == []) is fits
    assert all(f"found {minutes}, expected a whole number of at least 1" in one for one in sentences)


@pytest.mark.parametrize("times", ['daily = ["02:00"]', 'weekly = ["mon 06:00"]'])
def test_shared_times_of_day_name_their_time_zone(tmp_path, times):
    assert "a shared schedule's times must mean the same" in problem(tmp_path, MAILBOX + shared(times))
    assert problems(tmp_path, MAILBOX + shared(times, 'time_zone = "UTC"')) == []
    zone = MAILBOX.replace("[pipeline]", 'time_zone = "Europe/Berlin"\n[pipeline]')
    assert problems(tmp_path, zone + shared(times)) == []
    assert problems(tmp_path, MAILBOX + schedule(times)) == []


def test_a_time_zone_that_is_wrong_is_not_also_missing(tmp_path):
    text = MAILBOX + shared('daily = ["02:00"]', 'time_zone = "Europe/Berln"')
    assert "did you mean `Europe/Berlin`?" in problem(tmp_path, text)


@pytest.mark.parametrize(
    ("entities", "fits"),
    [
        ('["silver.orders"]', True),
        ('["silver.*", "gold.revenue"]', True),
        ('["silver.sales_*"]', True),
        ('["gold.*"]', False),
        ('["gold.costs"]', False),
        ('["*"]', False),
    ],
)
def test_a_shared_schedule_stays_inside_the_allowlist(tmp_path, entities, fits):
    sentences = problems(tmp_path, ALLOWLIST + shared(more=f"entities = {entities}"))
    assert (sentences == []) is fits
    assert all("is not inside [pipeline] entities" in one for one in sentences)
    assert problems(tmp_path, ALLOWLIST + schedule(more=f"entities = {entities}")) == []


def test_a_shared_schedule_of_all_entities_is_refused_under_an_allowlist(tmp_path):
    assert "missing, which means all" in problem(tmp_path, ALLOWLIST + shared())
    assert problems(tmp_path, MAILBOX + shared()) == []


def test_a_shared_backfill_must_be_allowed(tmp_path):
    more = 'backfill = "full"'
    assert "needs `allow_backfill = true` in [pipeline]" in problem(tmp_path, MAILBOX + shared(more=more))
    assert problems(tmp_path, MAILBOX + "allow_backfill = true\n" + shared(more=more)) == []
    assert problems(tmp_path, MAILBOX + schedule(more=more)) == []


ROUTE = '[[incidents.route]]\nname = "on-call"\nwebhook_env = "HOOK"\n'


@pytest.mark.parametrize(
    ("incidents", "rest", "words"),
    [
        ("escalate_after_minutes = 60\nescalate_to = 'on-call'", ROUTE, ""),
        ("escalate_after_minutes = 60", "[alerts]\nteams_webhook_env = 'HOOK'", ""),
        ("escalate_after_minutes = 60\nescalate_to = 'oncall'", ROUTE, "is no route's name; did you mean `on-call`?"),
        ("escalate_to = 'on-call'", ROUTE, "says nothing without `escalate_after_minutes`"),
        ("escalate_after_minutes = 60", ROUTE, "reaches nobody"),
    ],
)
def test_an_escalation_reaches_somebody(tmp_path, incidents, rest, words):
    sentences = problems(tmp_path, f"{AGENT}[incidents]\n{incidents}\n{rest}")
    assert (sentences == []) is (words == "")
    assert all(words in one for one in sentences)


def test_the_ids_of_a_shared_schedule_that_is_off_are_checked_too(tmp_path):
    assert problem(tmp_path, AGENT + shared(more="enabled = false")).endswith("in [pipeline].")


def test_several_broken_rules_are_all_told(tmp_path):
    text = AGENT + "status_seconds = 30\nstale_seconds = 5\n" + shared('daily = ["02:00"]', ident="x" * 41, env="tst")
    assert len(problems(tmp_path, text)) == 5


def test_every_rule_opens_with_its_sentence():
    for rule in RULES:
        first = rule.__doc__.splitlines()[0]
        assert first.endswith("."), rule
        assert len(first) > 20


LETTERS = "ab"
words = st.text("ab*?[]!", min_size=1, max_size=6)


@given(glob=words, word=words)
def test_a_glob_that_covers_a_word_means_everything_the_word_means(glob, word):
    names = ["".join(letters) for size in range(1, 5) for letters in product(LETTERS, repeat=size)]
    if covers(glob, word):
        meant = [name for name in names if fnmatch.fnmatchcase(name, word)]
        assert all(fnmatch.fnmatchcase(name, glob) for name in meant), meant


@pytest.mark.parametrize(
    ("glob", "word", "does"),
    [("*", "a.[ab]*", True), ("a.*", "a.[!b]?", True), ("a.?", "a.*", False), ("*a*", "[abc]", False),
     ("[ab]", "[ab]", True), ("a.b*", "a.*", False), ("[*]", "*", False)],
)  # fmt: skip
def test_a_glob_covers_another_one(glob, word, does):
    assert covers(glob, word) is does
