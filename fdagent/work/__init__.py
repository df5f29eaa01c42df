"""Runs jobs: one worker claims, runs table after table, and ends each attempt by the job chart."""
