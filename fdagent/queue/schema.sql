-- The queue of one agent. Columns of `job` are the fields of models/job.py; lists and maps are JSON text.
create table if not exists job (
  id text primary key,
  state text not null,
  op text not null,
  env text not null,
  run_key text not null,
  dedupe_key text not null,
  source text not null,
  entities text not null,
  cascade integer not null,
  backfill integer not null,
  version integer not null,
  attempt integer not null,
  max_attempts integer not null,
  not_before real not null,
  deadline real,
  claim text not null,
  worker text not null,
  place text not null,
  pid integer not null,
  process_started_at real not null,
  lease_seconds real not null,
  renewals integer not null,
  stop text not null,
  tables text not null,
  reason text not null,
  error text not null,
  category text not null,
  created_at real not null,
  started_at real,
  updated_at real not null,
  finished_at real
) strict;

-- Partial, so that a claim costs the same beside a million finished rows.
create index if not exists job_due on job (not_before) where state = 'queued';
create index if not exists job_running on job (id) where state = 'running';
create index if not exists job_finished on job (finished_at) where finished_at is not null;
create unique index if not exists job_dedupe on job (dedupe_key) where state in ('queued', 'running');
-- Whole, for keys that may never come again while any row of theirs is kept.
create index if not exists job_key on job (dedupe_key);

-- How many jobs are in each state, kept by every change of `job` itself: counting a million rows takes a third of a second.
create table if not exists tally (
  env text not null,
  state text not null,
  n integer not null,
  primary key (env, state)
) strict, without rowid;
insert into tally (env, state, n)
  select env, state, count(*) from job where not exists (select 1 from tally) group by env, state;
create trigger if not exists job_counted after insert on job begin
  insert into tally (env, state, n) values (new.env, new.state, 1) on conflict do update set n = n + 1;
end;
create trigger if not exists job_recounted after update of state on job when old.state <> new.state begin
  update tally set n = n - 1 where env = old.env and state = old.state;
  insert into tally (env, state, n) values (new.env, new.state, 1) on conflict do update set n = n + 1;
end;
create trigger if not exists job_discounted after delete on job begin
  update tally set n = n - 1 where env = old.env and state = old.state;
end;

-- Run-log rows, kept from the moment a table ends until they are in the run log.
create table if not exists run_row (
  seq integer primary key,
  job_id text not null,
  claim text not null,
  env text not null,
  row text not null
) strict;
create index if not exists run_row_batch on run_row (job_id, claim);

-- Which attempts' rows go into the run log as one append, and under which name: written before the append is tried, and
-- never changed. Whoever repeats an append so repeats the very same one.
create table if not exists run_batch (
  job_id text not null,
  claim text not null,
  name text not null,
  primary key (job_id, claim)
) strict, without rowid;
create index if not exists run_batch_name on run_batch (name);
-- Rows of an earlier file may be in the run log already, each attempt's under a name of its own: they keep it.
insert into run_batch (job_id, claim, name)
  select distinct job_id, claim, job_id || '/' || claim from run_row where not exists (select 1 from run_batch);

-- Wishes of a person to the daemon that has this queue, such as a drain; the newest of each name.
create table if not exists wish (
  name text primary key,
  value text not null
) strict;

-- How far each of the agent's own schedules has come; columns are the fields of queue/dues.py's Standing.
create table if not exists schedule (
  id text primary key,
  rule text not null,
  mark real not null,
  floor real not null,
  paused_until real
) strict, without rowid;

-- What became of each due time; columns are the fields of queue/dues.py's Entry.
create table if not exists due (
  schedule text not null,
  due real not null,
  outcome text not null,
  since real not null,
  until real not null,
  missed integer not null,
  noted_at real not null,
  job_id text not null,
  primary key (schedule, due)
) strict, without rowid;

-- Whose jobs these are: the folder of the one metadata project that this queue is used for.
create table if not exists project (
  only integer primary key check (only = 1),
  folder text not null
) strict;
