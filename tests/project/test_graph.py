"""Order, selection and cycles, on graphs of every shape."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdagent.errors import NotFound
from fdagent.project.graph import MAX_CYCLES, cycles, downstream, order, select
from fdagent.project.model import Entity, EntitySource, Layer, Load, Project


def made(reads: dict[str, tuple[str, ...]], ranks: dict[str, int] | None = None) -> Project:
    entities = {}
    for name, others in reads.items():
        layer, table = name.split(".")
        entities[name] = Entity(
            name=name,
            layer=Layer(layer, (ranks or {}).get(layer, 1), "LH"),
            table=table,
            file=Path(name),
            load=Load(mode="append"),
            sources=tuple(EntitySource(alias=f"a{n}", entity=other) for n, other in enumerate(others)),
        )
    return Project(root=Path(), layers={}, environments={}, entities=entities, metadata_version="")


SHOP = made(
    {
        "gold.revenue": ("silver.orders", "silver.customers"),
        "silver.orders": ("bronze.orders",),
        "silver.customers": ("bronze.customers",),
        "bronze.orders": (),
        "bronze.customers": (),
        "gold.churn": ("gold.revenue",),
    },
    ranks={"bronze": 1, "silver": 2, "gold": 3},
)


@st.composite
def projects(draw: st.DrawFn) -> Project:
    """Acyclic ones: an entity reads some of those made before it, of its own rank or a lower one."""
    size = draw(st.integers(1, 12))
    layers = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    labels = draw(st.permutations(range(size)))
    names = [f"l{layer}.t{label}" for layer, label in zip(layers, labels, strict=True)]
    reads = {}
    for index, name in enumerate(names):
        readable = [other for n, other in enumerate(names[:index]) if layers[n] <= layers[index]]
        reads[name] = tuple(draw(st.lists(st.sampled_from(readable), unique=True))) if readable else ()
    shuffled = draw(st.permutations(names))
    return made({name: reads[name] for name in shuffled}, ranks={f"l{n}": n for n in range(4)})


@given(projects())
def test_nothing_runs_before_what_it_reads_and_everything_runs_once(project: Project) -> None:
    names = order(project)
    assert sorted(names) == sorted(project.entities)
    place = {name: number for number, name in enumerate(names)}
    for entity in project.entities.values():
        assert all(place[read] < place[entity.name] for read in entity.upstream)


@given(projects())
def test_lower_ranks_run_first(project: Project) -> None:
    ranks = [project.entities[name].layer.rank for name in order(project)]
    assert ranks == sorted(ranks)


@given(projects(), st.randoms())
def test_the_order_does_not_depend_on_the_order_of_files(project: Project, random: object) -> None:
    names = list(project.entities)
    random.shuffle(names)  # type: ignore[attr-defined]
    other = Project(Path(), {}, {}, {name: project.entities[name] for name in names}, "")
    assert order(other) == order(project)


def test_the_order_is_by_rank_then_by_name() -> None:
    assert order(SHOP) == (
        "bronze.customers",
        "bronze.orders",
        "silver.customers",
        "silver.orders",
        "gold.revenue",
        "gold.churn",
    )


def chosen(*names: str, cascade: bool = False) -> list[str]:
    return [entity.name for entity in select(SHOP, names, cascade=cascade)]


def test_none_named_is_all() -> None:
    assert chosen() == list(order(SHOP))


def test_names_and_globs_are_chosen_once_and_in_the_order_of_a_run() -> None:
    assert chosen("gold.churn", "silver.*", "silver.orders", "gold.churn") == [
        "silver.customers",
        "silver.orders",
        "gold.churn",
    ]
    assert chosen("*.orders") == ["bronze.orders", "silver.orders"]
    assert chosen("silver.[co]*", "bronze.order?") == ["bronze.orders", "silver.customers", "silver.orders"]


def test_a_cascade_adds_all_that_read_the_chosen_and_nothing_else() -> None:
    assert chosen("silver.customers", cascade=True) == ["silver.customers", "gold.revenue", "gold.churn"]
    assert chosen("gold.churn", cascade=True) == ["gold.churn"]


@given(projects(), st.data())
def test_a_cascade_is_closed_and_minimal(project: Project, data: st.DataObject) -> None:
    start = data.draw(st.sets(st.sampled_from(sorted(project.entities))))
    reached = downstream(project, start)
    assert start <= reached
    for entity in project.entities.values():
        reads_reached = not reached.isdisjoint(entity.upstream)
        assert (entity.name in reached) == (entity.name in start or reads_reached)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["silver.order"], "No entity of this project is named or matched by `silver.order`. Did you mean `silver.orders`?"),
        (["Silver.Orders"], "No entity of this project is named or matched by `Silver.Orders`. Did you mean `silver.orders`?"),
        (["SILVER.*"], "No entity of this project is named or matched by `SILVER.*`. Did you mean `silver.orders`?"),
        (["zzz", "bronze.orders", "gold.churm"], "No entity of this project is named or matched by `zzz`, `gold.churm`. Did you mean `gold.churn`?"),
        ([""], "No entity of this project is named or matched by ``. Known: `bronze.customers`, `bronze.orders`, `gold.churn`, `gold.revenue`, `silver.customers`, `silver.orders`."),
        (["\x1b[31m"], "No entity of this project is named or matched by `\\x1b[31m`. Known: `bronze.customers`, `bronze.orders`, `gold.churn`, `gold.revenue`, `silver.customers`, `silver.orders`."),
        (["silver.[", "bronze.orders"], "No entity of this project is named or matched by `silver.[`. Did you mean `silver.orders`?"),
        ([f"q{n}" for n in range(14)], "No entity of this project is named or matched by " + ", ".join(f"`q{n}`" for n in range(12)) + " and 2 more. Known: `bronze.customers`, `bronze.orders`, `gold.churn`, `gold.revenue`, `silver.customers`, `silver.orders`."),
    ],
)  # fmt: skip
def test_words_that_name_nothing_are_all_named(names: list[str], sentence: str) -> None:
    with pytest.raises(NotFound) as caught:
        select(SHOP, names)
    assert str(caught.value) == sentence
    assert caught.value.exit_code == 3


graphs = st.integers(1, 7).flatmap(
    lambda size: st.dictionaries(
        st.sampled_from("abcdefg"[:size]), st.lists(st.sampled_from("abcdefg"), unique=True), min_size=1
    )
)


def is_on_a_cycle(reads: dict[str, list[str]], name: str, target: str) -> bool:
    seen, waiting = {target}, [target]
    while waiting:
        here = waiting.pop()
        if here == name:
            return True
        new = {other for other in reads.get(here, []) if other in reads} - seen
        seen |= new
        waiting += new
    return False


@given(graphs)
def test_cycles_are_real_whole_distinct_and_cover_every_reference_that_lies_on_one(reads: dict[str, list[str]]) -> None:
    found = cycles(reads)
    assert len(set(found)) == len(found) <= MAX_CYCLES
    covered = set()
    for circle in found:
        assert circle[0] == circle[-1] == min(circle)
        assert len(set(circle)) == len(circle) - 1
        steps = set(itertools.pairwise(circle))
        assert all(target in reads[name] for name, target in steps)
        covered |= steps
    on_cycles = {
        (name, target)
        for name, targets in reads.items()
        for target in targets
        if target in reads and is_on_a_cycle(reads, name, target)
    }
    assert covered <= on_cycles
    if len(found) < MAX_CYCLES:
        assert covered == on_cycles


def test_a_ring_of_thousands_is_one_cycle_named_whole() -> None:
    size = 5_000
    ring = {f"l.t{n:04}": [f"l.t{(n + 1) % size:04}"] for n in range(size)}
    (circle,) = cycles(ring)
    assert len(circle) == size + 1


def test_a_chain_of_thousands_has_no_cycle_and_an_order() -> None:
    names = [f"l.t{n:04}" for n in range(5_000)]
    chain = {name: tuple(names[n + 1 : n + 2]) for n, name in enumerate(names)}
    assert cycles(chain) == []
    assert order(made(chain)) == tuple(reversed(names))
