import pytest

from api.body_budget import BodyBudget
from shared.errors import Overloaded


def test_it_holds_up_to_its_size() -> None:
    budget = BodyBudget(10)
    budget.take(4)
    budget.take(6)
    assert budget.held_bytes == 10


def test_what_does_not_fit_is_refused_and_not_counted() -> None:
    budget = BodyBudget(10)
    budget.take(4)
    with pytest.raises(Overloaded, match="10 bytes"):
        budget.take(7)
    assert budget.held_bytes == 4
    budget.take(6)


def test_what_is_given_back_can_be_taken_again() -> None:
    budget = BodyBudget(10)
    budget.take(10)
    budget.give_back(10)
    budget.take(10)
    assert budget.held_bytes == 10


def test_more_than_was_taken_cannot_be_given_back() -> None:
    budget = BodyBudget(10)
    budget.take(1)
    with pytest.raises(AssertionError):
        budget.give_back(2)
