"""Every table and key of agent.toml, each declared once: type, default, range and meaning.

Guarantees: a `Settings` that `load_settings` returned was checked whole and is frozen; it holds names of environment
variables where secrets are meant, never a secret. What depends on a metadata project (does an environment exist, does
a schedule name an entity) is checked by `against.py`. Reads no file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from fdagent.config.forms import DAY_SECONDS, ENVIRONMENTS, GUID, LINE, NAME, VARIABLE, ZONE
from fdagent.config.incidents import Alerts, Incidents, Route
from fdagent.config.keys import Choice, Flag, Key, Location, Many, Number, Text, Whole
from fdagent.config.schedules import Pipeline, Schedule
from fdagent.config.shapes import (
    WORKSPACE,
    address_problem,
    authority_problem,
    certificate_problem,
    path_problem,
    size_problem,
    tables_problem,
    tenant_problem,
)

STALE_BEATS = 3
LEAST_STALE_SECONDS = 90
ADDRESS = Text("an https address", address_problem, tidy=lambda text: text.rstrip("/"))
AUTHORITY = Text("an https address without a path", authority_problem, private=True, tidy=lambda text: text.rstrip("/"))

IdentityKind = Literal["certificate", "client_secret", "managed_identity", "user", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who this agent is, what it works on, and how much at once."""

    name: Annotated[
        str,
        Key(
            NAME,
            "Its name among the agents that share an environment; no two may have the same.",
            unset="the host's name, each character that an id may not have replaced by `-`",
            example='"etl-01"',
        ),
    ] = ""
    project: Annotated[
        Path,
        Key(
            Location("a folder", path_problem),
            "The metadata project: the folder that holds `layers.toml`. A relative path is meant from this file's "
            "folder, here and in every other key.",
            required=True,
            example='"/srv/fabric-desktop/project"',
        ),
    ] = Path()
    environments: Annotated[
        tuple[str, ...],
        Key(ENVIRONMENTS, "The environments it runs. It runs no other.", required=True, example='["prod"]'),
    ] = ()
    workspaces: Annotated[
        tuple[str, ...],
        Key(
            Many(GUID, '["0f8fad5b-d9cb-469f-a165-70867728950e"]'),
            "The workspaces it may write to, keys workspaces included. Empty: those of its environments.",
        ),
    ] = ()
    home: Annotated[
        Path | None,
        Key(
            Location("a folder", path_problem),
            "Its own folder: its queue and its logs. The variable FABRIC_DESKTOP_HOME goes before it.",
            unset="`/var/lib/fabric-desktop`; on Windows `C:\\ProgramData\\FabricDesktop`",
            example='"/var/lib/fabric-desktop"',
        ),
    ] = None
    concurrency: Annotated[int, Key(Whole(1, 64), "Jobs that run at once, each in a worker process of its own.")] = 1
    status_seconds: Annotated[
        int, Key(Whole(1, 3600), "Seconds between two heartbeats in each environment's control folder.")
    ] = 30
    poll_seconds: Annotated[int, Key(Whole(1, 3600), "Seconds between two looks into the mailbox.")] = 10
    table_lease_seconds: Annotated[
        int,
        Key(
            Whole(5, 3600),
            "The span of a table's lease, renewed at a third of it; also how long a job waits for another writer "
            "before it says that the table is busy.",
        ),
    ] = 300
    owner: Annotated[
        str,
        Key(LINE, "Who answers for this agent; shown to the others.", unset="nobody", example='"data platform team"'),
    ] = ""
    drain_seconds: Annotated[
        int,
        Key(
            Whole(0, DAY_SECONDS),
            "Seconds that running jobs have left when the agent is stopped. The service's own stop timeout must be "
            "longer.",
        ),
    ] = 840
    stale_seconds: Annotated[
        int,
        Key(
            Whole(2, DAY_SECONDS),
            "Seconds without a heartbeat after which others may take this agent for lost; at least twice "
            "`status_seconds`.",
            unset=f"{STALE_BEATS} x `status_seconds`, at least {LEAST_STALE_SECONDS}",
            example="90",
        ),
    ] = 0
    max_job_hours: Annotated[float, Key(Number(0.01, 168), "Hours after which a running job is stopped.")] = 24.0
    retention_days: Annotated[
        int,
        Key(
            Whole(1, 3650),
            "Days a finished job is kept; with a mailbox, never fewer than `[pipeline] retention_days`.",
        ),
    ] = 30
    time_zone: Annotated[
        str,
        Key(
            ZONE,
            "The time zone of `daily` and `weekly` times, by its name in the tz database.",
            unset="the machine's",
            example='"Europe/Berlin"',
        ),
    ] = ""
    memory_limit: Annotated[
        str,
        Key(
            Text("an amount of memory of at least 128MiB", size_problem),
            "Memory that the engine of one worker may use before it writes to disk.",
            unset="the engine's own limit, 80 % of the machine's memory",
            example='"4GB"',
        ),
    ] = ""
    table_parallelism: Annotated[int, Key(Whole(1, 64), "Tables of one job that are computed side by side.")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How the agent signs in to Fabric. Each kind needs some of the keys and refuses the others."""

    kind: Annotated[
        IdentityKind,
        Key(
            Choice(get_args(IdentityKind)),
            "`none` runs local environments only; `user` reads a cached sign-in and is for trials.",
        ),
    ] = "none"
    tenant_id: Annotated[
        str,
        Key(
            Text("a tenant's GUID or domain", tenant_problem, private=True),
            "The tenant of the app registration.",
            unset="none",
            example='"0f8fad5b-d9cb-469f-a165-70867728950e"',
        ),
    ] = ""
    client_id: Annotated[
        str,
        Key(
            GUID,
            "The app registration's client id; with `managed_identity`, that of a user-assigned identity.",
            unset="none",
            example='"7c9e6679-7425-40de-944b-e07fc1f90ae7"',
        ),
    ] = ""
    certificate_path: Annotated[
        Path | None,
        Key(
            Location("the path of a .pem or .pfx file", certificate_problem),
            "The certificate with its private key.",
            unset="none",
            example='"agent.pem"',
        ),
    ] = None
    certificate_password_env: Annotated[
        str,
        Key(
            VARIABLE,
            "The environment variable that holds the certificate's password.",
            unset="the certificate has no password",
            example='"FABRIC_CERTIFICATE_PASSWORD"',
        ),
    ] = ""
    client_secret_env: Annotated[
        str,
        Key(
            VARIABLE,
            "The environment variable that holds the client secret.",
            unset="none",
            example='"FABRIC_CLIENT_SECRET"',
        ),
    ] = ""
    send_certificate_chain: Annotated[
        bool, Key(Flag(), "Send the certificate's chain, for apps that trust by subject name and issuer.")
    ] = False
    authority: Annotated[str, Key(AUTHORITY, "The identity provider's address; another one in a national cloud.")] = (
        "https://login.microsoftonline.com"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a job is tried, and how long it waits between its tries: twice as long each time, with jitter."""

    max_attempts: Annotated[int, Key(Whole(1, 100), "Tries of one job, the first included.")] = 3
    backoff_seconds: Annotated[int, Key(Whole(0, DAY_SECONDS), "Seconds before the second try.")] = 60
    max_backoff_seconds: Annotated[
        int, Key(Whole(0, DAY_SECONDS), "The longest wait between two tries; at least `backoff_seconds`.")
    ] = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLake:
    """Addresses of Fabric, for a regional or private-link host and for tests. `http` only to this machine itself."""

    blob_endpoint: Annotated[str, Key(ADDRESS, "The Blob API that control records and landing files go through.")] = (
        "https://onelake.blob.fabric.microsoft.com"
    )
    api_endpoint: Annotated[str, Key(ADDRESS, "The Fabric REST API.")] = "https://api.fabric.microsoft.com"
    table_url_prefix: Annotated[
        str,
        Key(
            Text("a table URL prefix", tables_problem),
            f"What the URL of a table begins with, before `/<lakehouse>/Tables/...`; `{WORKSPACE}` stands for the "
            "workspace's GUID.",
        ),
    ] = f"abfss://{WORKSPACE}@onelake.dfs.fabric.microsoft.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A whole agent.toml. `file` is where it was read."""

    file: Path
    agent: Agent
    identity: Identity
    retry: Retry
    schedules: tuple[Schedule, ...]
    pipeline: Pipeline
    incidents: Incidents
    routes: tuple[Route, ...]
    alerts: Alerts
    onelake: OneLake


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table of the file: its name in TOML, its class, and whether there may be many (`[[name]]`)."""

    name: str
    settings: type
    many: bool = False

    @property
    def header(self) -> str:
        """As it stands in the file."""
        return f"[[{self.name}]]" if self.many else f"[{self.name}]"


TABLES = (
    TableOf("agent", Agent),
    TableOf("identity", Identity),
    TableOf("retry", Retry),
    TableOf("schedule", Schedule, many=True),
    TableOf("pipeline", Pipeline),
    TableOf("incidents", Incidents),
    TableOf("incidents.route", Route, many=True),
    TableOf("alerts", Alerts),
    TableOf("onelake", OneLake),
)
