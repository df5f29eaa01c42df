"""A secret in agent.toml is refused, and is nowhere to be found afterwards."""

import dataclasses
import json
import traceback

import pytest
from config_kit import AGENT, MAILBOX, loaded, problem, problems, refusal, written
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fdagent.config.keys import declared
from fdagent.config.load import load_settings
from fdagent.config.secrets import described, secret_form, shown_key, variable_problem
from fdagent.config.settings import TABLES

CANARY = "kQ7Rz0vT4hWn2XcE"
SECRETS = {
    "a client secret": f"aB38Q~{CANARY}{CANARY}",
    "a signature": f"https://prod-1.westeurope.example/invoke?api-version=1&sig={CANARY}",
    "a shared access signature": f"SharedAccessSignature sr=x&sig={CANARY}",
    "an account key": f"DefaultEndpointsProtocol=https;AccountKey={CANARY}==",
    "a SAS token": f"?sv=2023-11-03&st=2027-01-01&se=2028-01-01&sig={CANARY}",
    "an encoded signature": f"https://x.example/%3Fsig%3D{CANARY}",
    "a workflow": f"https://prod-1.westeurope.logic.azure.com/workflows/{CANARY}",
    "a webhook": f"https://contoso.webhook.office.com/webhookb2/{CANARY}",
    "a PEM block": f"-----BEGIN PRIVATE KEY-----\\n{CANARY}\\n-----END PRIVATE KEY-----",
    "a token": f"eyJhbGciOiJIUzI1NiJ9.{CANARY}.x",
    "a bearer token": f"Bearer {CANARY}",
    "a user's password": f"https://me:{CANARY}@host.example",
}
KEYS = [(table, key) for table in TABLES for key in declared(table.settings)]


def everything_an_error_holds(file):
    """All that a log, a screen or a debugger could show of loading a file; the settings when it loads."""
    error = refusal(file)
    if error is not None:
        frames = [f"{frame.f_locals}" for frame, _ in traceback.walk_tb(error.__traceback__)]
        assert error.__cause__ is error.__context__ is None
        return "\n".join(
            [
                str(error),
                repr(error),
                repr(error.args),
                str(vars(error)),
                "".join(traceback.format_exception(error)),
                *frames,
            ]
        )
    read = load_settings(file)
    return repr(read) + json.dumps(dataclasses.asdict(read), default=str)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize(("table", "key"), KEYS, ids=lambda at: at.name)
def test_a_secret_under_any_key_is_refused_and_never_shown(tmp_path, table, key, secret):
    file = written(tmp_path, f'{table.header}\n{key.name} = "{secret}"\n')
    told = everything_an_error_holds(file)
    assert CANARY not in told
    assert f"{table.header}" in told
    assert f"{key.name}: " in told


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize(
    "line",
    ["x = [['{}']]", "x = {{y = {{z = '{}'}}}}", "[[agent.x]]\ny = ['a', '{}']", "environment = '{}'", "'{}' = 1", "['{}']",
     "[[schedule]]\nid = '{}'", "[[incidents.route]]\nteams = ['sales', '{}']", "[[nothing]]\nx = '{}'"],
)  # fmt: skip
def test_a_secret_anywhere_in_the_file_is_never_shown(tmp_path, line, secret):
    text = line.replace("'{}'", f'"{secret}"').replace("{{", "{").replace("}}", "}")
    told = everything_an_error_holds(written(tmp_path, f"{AGENT}{text}\n"))
    assert "problem" in told
    assert CANARY not in told


@pytest.mark.parametrize(
    "text",
    [f"owner = {CANARY}", f"[{CANARY}", f'"{CANARY}" = 1\n"{CANARY}" = 2', f"[{CANARY}]\n[{CANARY}]", f"x = '{CANARY}",
     f"x = {{{CANARY} = 1, {CANARY} = 2}}", f"x = {{}}\n[agent.x.{CANARY}]", f"x = [\n{CANARY}", f'x = "\\{CANARY}"'],
)  # fmt: skip
def test_a_file_that_is_no_toml_shows_nothing_of_it(tmp_path, text):
    told = everything_an_error_holds(written(tmp_path, f"{AGENT}{text}\n"))
    assert "not valid TOML" in told
    assert CANARY not in told


@pytest.mark.parametrize(
    "key",
    ["client_secret", "secret", "Client-Secret", "certificate_password", "PASSWORD", "token", "access_token",
     "webhook", "teams_webhook", "webhook_url", "api_key", "client_secret_environment", "connection_string"],
)  # fmt: skip
@pytest.mark.parametrize(
    "value", ['"hunter2"', "12345678", "true", '["hunter2"]', '{ value = "hunter2" }', "2027-01-15"]
)
@pytest.mark.parametrize("table", ["[identity]", "[agent]", "[[incidents.route]]", "[other]"])
def test_a_key_named_like_a_secret_is_refused_whatever_it_holds(tmp_path, table, key, value):
    file = written(tmp_path, f"[retry]\n{table}\n{key} = {value}\n")
    told = everything_an_error_holds(file)
    assert "looks like a secret by its name" in told
    assert "hunter2" not in told
    assert "12345678" not in told
    assert key in told


def test_a_refused_secret_says_which_key_to_use_instead(tmp_path):
    text = AGENT + '[identity]\nclient_secret = "hunter2"\n'
    assert problem(tmp_path, text) == (
        "[identity] client_secret: looks like a secret by its name; no secret stands in this file (its value is not "
        "shown): put it into an environment variable and name that in a key such as `client_secret_env`."
    )


@pytest.mark.parametrize(
    "name",
    ["s3cr3t", "Hunter2", "client_secret", CANARY, "A B", "A-B", "1ABC", "", "A=B", "$SECRET", "%SECRET%", "X" * 65,
     "JBSWY3DPEHPK3PXP", "0F8FAD5BD9CB469FA165", "ÄPFEL", "SECRET\\n"],
)  # fmt: skip
@pytest.mark.parametrize("key", ["identity.client_secret_env", "alerts.teams_webhook_env", "other.whatever_env"])
def test_what_is_no_variables_name_is_taken_for_the_secret_itself(tmp_path, key, name):
    sentences = problems(tmp_path, f'{key} = "{name}"\n{AGENT}')
    [about] = [one for one in sentences if "_env: " in one]
    assert "what was found is not shown" in about
    assert not name or f'"{name}"' not in about
    assert CANARY not in "".join(sentences)


@pytest.mark.parametrize("value", ["123456", "true", '["hunter2"]', "{ a = 'hunter2' }", "1.5", "2027-01-15"])
def test_a_variables_name_of_another_type_is_not_shown_either(tmp_path, value):
    sentence = problem(tmp_path, AGENT + f"[alerts]\nteams_webhook_env = {value}")
    assert sentence == (
        "[alerts] teams_webhook_env: expected the name of an environment variable (what was found is not shown)."
    )


@pytest.mark.parametrize("name", ["FABRIC_CLIENT_SECRET", "TEAMS_WEBHOOK_2", "_X", "SECRET", "FD_SECRET_2027_PRIMARY"])
def test_a_variables_name_is_taken(tmp_path, name):
    assert variable_problem(name) == ""
    assert loaded(tmp_path, AGENT + f'[alerts]\nteams_webhook_env = "{name}"').alerts.teams_webhook_env == name


@pytest.mark.parametrize(
    "text",
    ["etl-01", "silver.orders", "Europe/Berlin", "Ada Lovelace", "ada@contoso.com", "/srv/fabric/project", "22:00-06:00",
     "https://onelake.blob.fabric.microsoft.com", "abfss://{workspace}@onelake.dfs.fabric.microsoft.com", "mon 06:00",
     "C:\\ProgramData\\FabricDesktop", "a sign of st=art", "nightly-load-02", "token ring team"],
)  # fmt: skip
def test_harmless_values_are_no_secrets_and_are_shown(text):
    assert secret_form(text) == ""
    assert described(text).startswith('"')


@pytest.mark.parametrize("text", [CANARY, f"x-{CANARY}", "0f8fad5b-d9cb-469f-a165-70867728950e", "a" * 61])
def test_a_value_that_might_be_a_secret_is_shown_by_its_length(text):
    assert described(text) == f"a text of {len(text)} characters"
    assert shown_key(text) == f"(a key of {len(text)} characters)" or text == "a" * 61


@pytest.mark.parametrize("key", ["tenant_id", "client_id", "authority", "certificate_path"])
def test_what_people_confuse_a_secret_with_is_not_shown(tmp_path, key):
    told = everything_an_error_holds(written(tmp_path, f'{AGENT}[identity]\nkind = "user"\n{key} = "{CANARY}"'))
    assert CANARY not in told
    assert key in told


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.sampled_from(KEYS),
    before=st.text(st.characters(codec="utf-8", exclude_characters='"\\\x7f', min_codepoint=32), max_size=30),
    after=st.text(st.characters(codec="utf-8", exclude_characters='"\\\x7f', min_codepoint=32), max_size=30),
)
@example(where=KEYS[0], before="x" * 40, after="")
def test_a_random_value_under_any_key_is_either_right_or_not_shown(tmp_path, where, before, after):
    table, key = where
    file = written(
        tmp_path, f'{table.header}\n{key.name} = "{before}{CANARY}{after}"\n{"" if table.name == "agent" else AGENT}'
    )
    error = refusal(file)
    assert error is None or CANARY not in str(error)


def test_a_file_with_secrets_reports_everything_else_too(tmp_path):
    text = MAILBOX + 'claim = "never"\nwebhook = "x"\n[retry]\nmax_attempts = 0\n'
    assert len(problems(tmp_path, text)) == 3
