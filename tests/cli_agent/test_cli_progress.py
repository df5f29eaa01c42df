"""What a job shows of its tables while they run."""

from fdagent.engine.runtable import run_table
from fdagent.work import runner


def test_every_table_that_runs_is_shown_as_running_however_soon_it_began_after_another(desk, monkeypatch):
    shown = {}

    def looked_at(project, entity, context):
        tables = desk.get(context.job_id).tables
        shown[entity.name] = {name: at["state"] for name, at in tables.items()}
        return run_table(project, entity, context)

    monkeypatch.setattr(runner, "run_table", looked_at)
    assert desk("enqueue", "dev").code == 0
    assert desk("run", "--until-idle").code == 0
    bronze, silver, gold = "bronze.orders", "silver.orders", "gold.revenue_by_customer"
    assert shown == {
        bronze: {bronze: "running", silver: "waiting", gold: "waiting"},
        silver: {bronze: "succeeded", silver: "running", gold: "waiting"},
        gold: {bronze: "succeeded", silver: "succeeded", gold: "running"},
    }


def test_a_table_of_a_second_attempt_is_shown_as_running_too(desk, monkeypatch):
    shown = []

    def looked_at(project, entity, context):
        shown.append(desk.get(context.job_id).tables[entity.name]["state"])
        return run_table(project, entity, context)

    desk("enqueue", "dev", "bronze.orders")
    landing = next((desk.project / "landing").glob("*.csv"))
    body = landing.read_bytes()
    landing.unlink()
    monkeypatch.setattr(runner, "run_table", looked_at)
    desk("run", "--until-idle")
    landing.write_bytes(body)
    [job] = desk("status", "--json").json["finished"]
    assert desk("retry", job["id"]).code == 0
    assert desk("run", "--until-idle").code == 0
    assert shown == ["running", "running"]
