"""Tasks that run when somebody asks: once, in the asking thread, with what they returned or raised."""

import threading

import pytest
from h264lite.scheduler.threads.lazy_task import LazyTask


def test_it_runs_once_and_where_it_is_asked_for():
    ran = []
    task = LazyTask(lambda: False, lambda a, b: ran.append(threading.get_ident()) or a + b, 2, 3)
    assert not ran and not task.done()
    assert task.result() == 5 == task.result() and task.done() and task.exception() is None
    assert ran == [threading.get_ident()]


def test_it_is_done_where_it_would_not_wait():
    came = [False]
    task = LazyTask(lambda: came[0], int, "7")
    assert not task.done()
    came[0] = True
    assert task.done() and task.result() == 7


def test_what_it_raised_is_kept():
    task = LazyTask(lambda: True, divmod, 1, 0)
    assert isinstance(task.exception(), ZeroDivisionError) and task.done()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            task.result()


def test_an_interrupted_task_may_be_asked_again():
    answers = [KeyboardInterrupt(), None]

    def work():
        if (answer := answers.pop(0)) is not None:
            raise answer
        return "whole"

    task = LazyTask(lambda: True, work)
    with pytest.raises(KeyboardInterrupt):
        task.result()
    assert task.result() == "whole" and not answers
