"""Countdown: a target from a few numbers; the task, its check, its searches and their traces."""

from engine.tasks.countdown.task import Countdown as Countdown
