"""What is wrong between entities: unknown ones, ranks, cycles, variables."""

from pathlib import Path

import pytest
from project_kit import BRONZE, ENVIRONMENTS, GOLD, LAYERS, SILVER, problems, project, write

from fdagent.project.graph import MAX_CYCLES


def reading(*entities: str) -> str:
    sources = "\n".join(f'a{n} = "{entity}"' for n, entity in enumerate(entities))
    places = ", ".join(f"{{a{n}}}" for n in range(len(entities)))
    return f'[source]\n{sources}\n[transform]\nsql = "select * from {places}"\n[load]\nmode = "append"\n'


def silver(**reads: tuple[str, ...]) -> dict[str, str]:
    return {
        f"entities/silver/{name}.toml": reading(*(f"silver.{other}" for other in others))
        for name, others in reads.items()
    }


def cycle(first: str, names: str) -> str:
    circle = " -> ".join(f"silver.{name}" for name in names)
    return f"entities/silver/{first}.toml, [source]: a cycle, each reads the next: {circle}."


def test_an_unknown_entity_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    root = project(
        tmp_path, silver=SILVER.replace("bronze.orders", "Bronze.order"), gold=reading("silver.ordres", "raw.x")
    )
    assert problems(root) == (
        'entities/gold/revenue.toml, [source] a0: there is no entity "silver.ordres"; did you mean `silver.orders`?',
        'entities/gold/revenue.toml, [source] a1: there is no entity "raw.x"; known: bronze.orders, gold.revenue, silver.orders.',
        'entities/silver/orders.toml, [source] entity: there is no entity "Bronze.order"; did you mean `bronze.orders`?',
    )


def test_an_entity_may_read_its_own_rank_and_a_lower_one_but_not_a_higher_one(tmp_path: Path) -> None:
    root = write(project(tmp_path), silver(extra=("orders",)))
    assert problems(root) == ()
    assert problems(write(root, {"entities/bronze/late.toml": reading("silver.orders")})) == (
        "entities/bronze/late.toml, [source] a0: `silver.orders` has rank 2, expected at most 1, the reader's own.",
    )


def test_layers_of_one_rank_may_read_each_other(tmp_path: Path) -> None:
    root = project(tmp_path, layers=LAYERS.replace("rank = 3", "rank = 2"))
    assert problems(write(root, {"entities/silver/back.toml": reading("gold.revenue")})) == ()


def test_an_entity_that_reads_itself_is_one_problem_and_no_cycle(tmp_path: Path) -> None:
    assert problems(project(tmp_path, silver=SILVER.replace("bronze.orders", "silver.orders"))) == (
        "entities/silver/orders.toml, [source] entity: `silver.orders` reads itself.",
    )


def test_a_cycle_is_named_whole_and_once_from_its_first_name(tmp_path: Path) -> None:
    root = write(project(tmp_path), silver(c=("a",), a=("b",), b=("c",), outside=("a", "b")))
    assert problems(root) == (cycle("a", "abca"),)


def test_each_of_several_cycles_is_named_once(tmp_path: Path) -> None:
    reads = silver(a=("b",), b=("a", "c"), c=("b",), x=("y",), y=("x",), bridge=("a", "x"))
    assert problems(write(project(tmp_path), reads)) == (
        cycle("a", "aba"),
        cycle("b", "bcb"),
        cycle("x", "xyx"),
    )


def test_a_short_way_home_and_a_long_one_are_two_cycles(tmp_path: Path) -> None:
    reads = silver(a=("b", "c"), b=("c",), c=("a",))
    assert problems(write(project(tmp_path), reads)) == (cycle("a", "abca"), cycle("a", "aca"))


def test_more_cycles_than_anyone_can_read_are_cut_and_it_is_said(tmp_path: Path) -> None:
    names = [f"n{n:02}" for n in range(12)]
    reads = silver(**{name: tuple(other for other in names if other != name) for name in names})
    found = problems(write(project(tmp_path), reads))
    assert len(found) == MAX_CYCLES + 1
    assert found[-1] == f"entities: there may be more cycles than the {MAX_CYCLES} named."


def test_a_cycle_through_the_ranks_is_named_beside_the_rank(tmp_path: Path) -> None:
    assert problems(project(tmp_path, silver=SILVER.replace("bronze.orders", "gold.revenue"))) == (
        "entities/silver/orders.toml, [source] entity: `gold.revenue` has rank 3, expected at most 2, the reader's own.",
        "entities/gold/revenue.toml, [source]: a cycle, each reads the next: gold.revenue -> silver.orders -> gold.revenue.",
    )


def test_ranks_that_are_not_known_accuse_nobody(tmp_path: Path) -> None:
    assert problems(project(tmp_path, layers=LAYERS.replace("rank = 2", "rank = 'two'"))) == (
        'layers.toml, [silver] rank: found "two", expected a whole number from 0 to 1000.',
    )
    assert problems(project(tmp_path, layers=LAYERS.replace("[silver]", "[silvr]"))) == (
        'entities/silver: "silver" is not a layer of layers.toml; did you mean `silvr`?',
    )


def test_every_environment_needs_the_variables_of_every_pattern(tmp_path: Path) -> None:
    environments = f'{ENVIRONMENTS}[test]\ntarget = "local"\n[stage]\ntarget = "local"\nvars = {{ landig = "x" }}\n'
    where = "entities/bronze/orders.toml, [source] files: `{landing}` is not one of the vars of environment"
    assert problems(project(tmp_path, environments=environments)) == (
        f"{where} test.",
        f"{where} stage; did you mean `landig`?",
    )


def test_an_address_in_a_variable_is_for_fabric_only(tmp_path: Path) -> None:
    environments = ENVIRONMENTS.replace('"landing"', '"abfss://raw@account/landing?sig=SECRET"')
    assert problems(project(tmp_path, environments=environments)) == (
        "entities/bronze/orders.toml, [source] files: is an address in the local environment dev, expected a path.",
    )


@pytest.mark.parametrize("name", ["entities/bronze/orders.toml", "entities/silver/orders.toml"])
def test_the_reader_of_a_broken_entity_is_not_accused(tmp_path: Path, name: str) -> None:
    found = problems(write(project(tmp_path), {name: "= broken"}))
    assert len(found) == 1
    assert found[0].startswith(f"{name}, line 1, column 1: not valid TOML")


def test_the_pattern_of_a_fabric_environment_may_be_an_address(tmp_path: Path) -> None:
    guid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    ids = ", ".join(f'{name} = "{guid}"' for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta"))
    prod = f'[prod]\ntarget = "fabric"\nworkspace = "{guid}"\nlakehouses = {{ {ids} }}\nvars = {{ landing = "abfss://x" }}\n'
    assert problems(project(tmp_path, environments=ENVIRONMENTS + prod, bronze=BRONZE, gold=GOLD)) == ()
