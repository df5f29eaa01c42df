"""Kinds of values that several tables of agent.toml use."""

from fdagent.config.keys import Many, Text, identifier
from fdagent.config.secrets import variable_problem
from fdagent.config.shapes import glob_problem, guid_problem, line_problem
from fdagent.config.zones import zone_problem

DAY_SECONDS = 86_400
YEAR_MINUTES = 366 * 1440

LINE = Text("a text", line_problem)
GUID = Text("a GUID", guid_problem, private=True, tidy=str.lower)
VARIABLE = Text("the name of an environment variable", variable_problem, private=True)
ZONE = Text("a time zone of the tz database", zone_problem)
NAME = identifier("a name")
ENVIRONMENT = identifier("an environment")
ENVIRONMENTS = Many(ENVIRONMENT, '["prod"]', least=1)
ENTITIES = Many(Text("an entity or a glob", glob_problem), '["silver.*", "gold.revenue"]', least=1)
