"""Problems are gathered, and all of them are raised at once."""

from __future__ import annotations

import pytest

from tauloop.common.errors import DescriptionError, InputError, LogError, Problem, Problems


def test_all_problems_of_an_input_are_raised_at_once():
    problems = Problems()
    problems.add("rate", "is 0 Hz", "give a frequency above zero")
    problems.add("mass", "is missing", file="arm.yaml", line=3)
    with pytest.raises(InputError) as error:
        InputError.raise_if_any(problems)
    assert str(error.value) == (
        "rate: is 0 Hz\n    remedy: give a frequency above zero\nmass: is missing (arm.yaml, line 3)"
    )
    assert error.value.problems == tuple(problems)


def test_nothing_is_raised_without_problems():
    InputError.raise_if_any(Problems())
    InputError.raise_if_any(problem for problem in ())


def test_problems_of_named_errors_are_taken_up_and_others_pass():
    problems = Problems()
    with problems.collecting(InputError, DescriptionError):
        raise DescriptionError(Problem(where="a", what="is wrong"))
    assert [problem.where for problem in problems] == ["a"]
    with pytest.raises(LogError), problems.collecting(InputError):
        raise LogError(Problem(where="b", what="is damaged"))
    assert len(problems) == 1
