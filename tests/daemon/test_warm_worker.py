"""A worker that goes on while what its daemon serves changes."""

import pytest
from daemon_kit import make_site, worker_here

from fdagent.work.news import News
from models.job import JobState

pytestmark = pytest.mark.process


def test_a_worker_takes_jobs_of_the_environments_that_its_daemon_serves_now(tmp_path):
    site = make_site(tmp_path / "project")
    site.ask()
    news = [News(("prod",))]
    with worker_here(site) as worker:
        worker.news = lambda: news[-1]
        assert worker.work_off() == 0
        news.append(News())
        assert worker.work_off() == 0
        assert [job.state for job in worker.jobs.unfinished()] == [JobState.QUEUED]
        news.append(News(("dev", "prod")))
        assert worker.work_off() == 1
        assert worker.jobs.unfinished() == []


def test_a_worker_whose_daemon_lost_its_name_meanwhile_takes_no_second_job(tmp_path):
    site = make_site(tmp_path / "project")
    site.ask()
    site.ask()
    with worker_here(site) as worker:
        served = iter([("dev",)])
        worker.news = lambda: News(next(served, ()))
        assert worker.work_off() == 1
        assert [job.state for job in worker.jobs.unfinished()] == [JobState.QUEUED]
