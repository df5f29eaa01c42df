"""Files that can't be read, names that can't be, and things that lie where they should not."""

import os
from pathlib import Path

import pytest
from project_kit import BRONZE, GOLD, SILVER, SILVER_FILE, problems, project, write

from fdagent.errors import ProjectError
from fdagent.project import files as files_module
from fdagent.project import load as load_module
from fdagent.project.load import load_project

FROM_FILE = SILVER.replace('sql = "select * from {source}"', 'sql_file = "orders.sql"')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[source\nentity = 1", ", line 1, column 8: not valid TOML: "),
        ("a = 1\nb = ", ", line 2, column 5: not valid TOML: "),
        ("a = 1\na = 2", ", line 2, column 6: not valid TOML: "),
        ('[a]\nb = """x', ", line 2, column 9: not valid TOML: "),
        (b"a = '\x00'", ", line 1, column 6: not valid TOML: "),
        ("a = 2027-02-31", ", line 1, column 5: not valid TOML: "),
        ("a = " + "[" * 5000, ": not valid TOML: values are nested too deeply."),
        ("a = " + "1" * 5000, ": not valid TOML: a number has too many digits."),
        (b"\na = '\xff'", ": is not UTF-8: line 2 has byte 0xff."),
        ("a".encode("utf-16"), ": is not UTF-8: line 1 has byte 0xff."),
        (b"#" * 1_048_577, ": is larger than 1048576 bytes, which is the most that is read."),
    ],
)
def test_a_file_that_is_not_toml_is_named_with_line_and_column(
    tmp_path: Path, text: str | bytes, sentence: str
) -> None:
    (found,) = problems(project(tmp_path, silver=text))
    assert found.startswith(SILVER_FILE + sentence)
    assert "(at " not in found


def test_a_broken_file_does_not_make_the_references_to_it_a_problem(tmp_path: Path) -> None:
    found = problems(project(tmp_path, layers="[", environments="[", bronze="["))
    assert [sentence.split(",")[0] for sentence in found] == [
        "layers.toml",
        "environments.toml",
        "entities/bronze/orders.toml",
    ]


def test_a_missing_environments_toml_is_a_sentence_beside_the_others(tmp_path: Path) -> None:
    root = write(project(tmp_path, silver=SILVER.replace("scd1", "scd3")), {"environments.toml": None})
    assert problems(root)[0] == "environments.toml: is missing."
    assert len(problems(root)) == 2


def test_an_empty_file_lacks_what_every_entity_needs(tmp_path: Path) -> None:
    assert problems(project(tmp_path, silver="")) == (
        f'{SILVER_FILE}, [source]: missing, expected `files`, `entity`, or aliases such as `orders = "bronze.orders"`.',
        f'{SILVER_FILE}, [load]: missing, expected `mode = …`, one of "overwrite", "append" or "scd1".',
    )


def test_a_project_without_entities_says_where_they_belong(tmp_path: Path) -> None:
    root = project(tmp_path)
    for file in root.rglob("entities/*/*.toml"):
        file.unlink()
    assert problems(root) == ("entities: holds no entity, expected files such as entities/bronze/orders.toml.",)


def test_a_file_in_place_of_the_entities_folder_is_a_sentence(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "entities").rename(tmp_path / "elsewhere")
    (root / "entities").write_text("")
    assert problems(root) == ("entities: is a file, expected a folder.",)


def test_folders_pipes_and_circular_links_in_place_of_a_file_are_sentences_and_never_block(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "entities/silver/folder.toml").mkdir()
    os.mkfifo(root / "entities/silver/pipe.toml")
    (root / "entities/silver/self.toml").symlink_to("self.toml")
    (root / "entities/silver/gone.toml").symlink_to("nowhere.toml")
    (root / "entities/round").symlink_to("round")
    assert problems(root) == (
        "entities/silver/folder.toml: is not a file that can be read as text.",
        "entities/silver/gone.toml: is missing.",
        "entities/silver/pipe.toml: is not a file that can be read as text.",
        "entities/silver/self.toml: can't be read: too many levels of symbolic links.",
    )


def test_links_out_of_the_project_are_refused_and_links_inside_it_are_followed(tmp_path: Path) -> None:
    root = project(tmp_path / "project", silver=FROM_FILE)
    write(tmp_path, {"outside.sql": "select * from {source}", "project/sql/shared.sql": "select * from {source}"})
    (root / "entities/silver/orders.sql").symlink_to(root / "sql/shared.sql")
    assert problems(root) == ()
    (root / "entities/silver/orders.sql").unlink()
    (root / "entities/silver/orders.sql").symlink_to(tmp_path / "outside.sql")
    assert problems(root) == (
        (
            f"{SILVER_FILE}, [transform] sql_file: `entities/silver/orders.sql` lies outside the project, "
            "expected a file inside it."
        ),
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.sql", "`entities/silver/gone.sql` is missing."),
        (
            "../../../secret.sql",
            "`entities/silver/../../../secret.sql` lies outside the project, expected a file inside it.",
        ),
        ("/etc/passwd", 'found "/etc/passwd", expected a path beside the entity\'s file, with forward slashes.'),
        ("C:/x.sql", 'found "C:/x.sql", expected a path beside the entity\'s file, with forward slashes.'),
        ("..\\\\x.sql", 'found "..\\\\\\\\x.sql", expected a path beside the entity\'s file, with forward slashes.'),
        ("\\u0000.sql", 'found "\\u0000.sql", expected a file\'s name.'),
        (".", "`entities/silver/.` is not a file that can be read as text."),
        ("", 'found "", expected a file\'s name.'),
        ("a" * 300, f"`entities/silver/{'a' * 300}` can't be read: file name too long."),
    ],
)
def test_an_sql_file_that_can_not_be_read_is_named_where_it_is_asked_for(
    tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "secret.sql").write_text("select 1")
    root = project(tmp_path / "project", silver=FROM_FILE.replace("orders.sql", name))
    assert problems(root) == (f"{SILVER_FILE}, [transform] sql_file: {sentence}".replace("\\\\\\\\", "\\\\"),)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (b"", "has no SQL, only white space and comments."),
        (b"-- {source}\n/* select */", "has no SQL, only white space and comments."),
        (b"select \xe9 from {source}", "`entities/silver/orders.sql` is not UTF-8: line 1 has byte 0xe9."),
        (b"select 1\0 from {source}", "has a NUL character, which no SQL has."),
    ],
)
def test_an_sql_file_without_usable_sql_is_a_sentence(tmp_path: Path, sql: bytes, sentence: str) -> None:
    root = write(project(tmp_path, silver=FROM_FILE), {"entities/silver/orders.sql": sql})
    assert problems(root) == (f"{SILVER_FILE}, [transform] sql_file: {sentence}",)


def test_a_file_and_a_folder_without_rights_are_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights are taken by hand, because the tests may run as root, who has them all."""
    root = project(tmp_path)
    real_open, real_iterdir = Path.open, Path.iterdir

    def denied_open(path: Path, mode: str = "r") -> object:
        if path.name == "revenue.toml":
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, mode)

    def denied_iterdir(path: Path) -> object:
        if path.name == "silver":
            raise PermissionError(13, "Permission denied", str(path))
        return real_iterdir(path)

    monkeypatch.setattr(Path, "open", denied_open)
    monkeypatch.setattr(Path, "iterdir", denied_iterdir)
    assert problems(root) == (
        "entities/silver: the folder can't be read: permission denied.",
        "entities/gold/revenue.toml: can't be read: permission denied.",
    )


def test_a_root_without_rights_is_not_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(ProjectError, match=r"the folder can't be read \(permission denied\)"):
        load_project(project(tmp_path))


def test_a_name_no_terminal_can_show_is_escaped(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "entities/silver").joinpath(os.fsdecode(b"\xff\x1b[31m.toml")).write_text("")
    found = problems(root)
    assert found[0].startswith("entities/silver/\\udcff\\x1b[31m.toml: the table name ")
    assert all(sentence.isprintable() for sentence in found)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("entities/x.toml", "entities/x.toml: lies in no layer's folder, expected entities/<layer>/<table>.toml."),
        ("entities/silver/sub/x.toml", "entities/silver/sub: holds entities that are not read, expected entities/<layer>/<table>.toml."),
        ("entities/Silver/x.toml", 'entities/Silver: "Silver" is not a layer of layers.toml; did you mean `silver`?'),
        ("entities/raw/x.toml", 'entities/raw: "raw" is not a layer of layers.toml; known: bronze, gold, silver.'),
        ("entities/raw/x.sql", 'entities/raw: "raw" is not a layer of layers.toml; known: bronze, gold, silver.'),
        ("entities/silver/x.TOML", "entities/silver/x.TOML: expected the ending .toml in small letters."),
        ("entities/silver/Orders.toml", 'entities/silver/orders.toml: "Orders" and "orders" differ only in letter case.'),
        ("entities/silver/a.b.toml", 'entities/silver/a.b.toml: the table name "a.b" has a dot, which stands between a layer and its table.'),
        ("entities/silver/nul.toml", 'entities/silver/nul.toml: the table name "nul" is a device name on Windows.'),
        ("entities/silver/COM7.toml", 'entities/silver/COM7.toml: the table name "COM7" is a device name on Windows.'),
        ("entities/silver/a b.toml", "entities/silver/a b.toml: the table name \"a b\" has a character that is not a letter, a digit, '.', '_' or '-'."),
        ("entities/silver/größe.toml", "entities/silver/größe.toml: the table name \"größe\" has a character that is not a letter, a digit, '.', '_' or '-'."),
        ("entities/silver/_delta_log.toml", 'entities/silver/_delta_log.toml: the table name "_delta_log" begins with an underscore; Spark and Fabric take such a folder for a hidden one.'),
        (f"entities/silver/{'t' * 65}.toml", f'entities/silver/{"t" * 65}.toml: the table name "{"t" * 59}…" has 65 characters, 64 are allowed.'),
    ],
)  # fmt: skip
def test_a_file_in_the_wrong_place_or_under_a_wrong_name_is_a_sentence(
    tmp_path: Path, file: str, sentence: str
) -> None:
    text = SILVER if file.endswith(".toml") else "select 1"
    assert problems(write(project(tmp_path), {file: text})) == (sentence,)


def test_too_many_entities_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "MAX_ENTITIES", 2)
    assert problems(project(tmp_path)) == ("entities: holds 3 entities; 2 are allowed.",)


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_ENTRIES", 2)
    assert problems(project(tmp_path))[0] == "entities: holds 3 files and folders; 2 are allowed."


def test_all_problems_of_all_files_come_at_once(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        layers='format = 1\n[bronze]\nrank = "1"\nlakehouse = "LH_Bronze"\n[silver]\nrnk = 2\nlakehouse = "LH_Silver"\n[gold]\nrank = 3\nlakehouse = "LH Gold"\n',
        environments='format = 1\n[dev]\ntarget = "locl"\n',
        bronze=BRONZE.replace("append", "upsert"),
        silver=SILVER.replace('key = ["order_id"]', 'key = "order_id"').replace("{source}", "{src}"),
        gold=GOLD.replace("silver.orders", "silver.order") + 'partition_by = ["x"]\n',
    )
    assert problems(root) == (
        'layers.toml, [bronze] rank: found "1", expected a whole number from 0 to 1000.',
        "layers.toml, [silver] rnk: unknown key; did you mean `rank`?",
        "layers.toml, [silver] rank: missing, expected a whole number from 0 to 1000.",
        'layers.toml, [gold] lakehouse: "LH Gold" is not a letter followed by letters, digits and underscores.',
        'environments.toml, [dev] target: found "locl", expected "local" or "fabric"; did you mean `local`?',
        'entities/bronze/orders.toml, [load] mode: found "upsert", expected "overwrite", "append" or "scd1".',
        "entities/gold/revenue.toml, [load] partition_by: unknown key; known: key, mode, on_duplicate_key, on_new_column, on_null_key, order_by.",
        "entities/silver/orders.toml, [transform] sql: `{src}` is not one of the sources; did you mean `source`?",
        "entities/silver/orders.toml, [transform] sql: the source `source` is not used, expected `{source}` in the SQL.",
        'entities/silver/orders.toml, [load] key: found "order_id", expected a list of column names, such as ["order_id"].',
        'entities/gold/revenue.toml, [source] o: there is no entity "silver.order"; did you mean `silver.orders`?',
        "entities/bronze/orders.toml, [source] files: `{landing}` is not one of the vars of environment dev.",
    )


@pytest.mark.parametrize("sign", "%*?[")
def test_a_project_folder_whose_path_is_a_pattern_is_refused_when_it_is_loaded(tmp_path: Path, sign: str) -> None:
    root = project(tmp_path / f"a{sign}b")
    with pytest.raises(ProjectError, match=rf"its path has a '\{sign}', .*rename the folder"):
        load_project(root)
