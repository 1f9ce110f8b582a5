import pytest

from shared.cache_scopes import kind_of, of_job, of_owner, public

KEY = "mv-secret"


def test_two_keys_never_share_a_scope_unless_a_setting_says_so() -> None:
    assert of_owner("one", "key") != of_owner("two", "key")
    assert of_owner("one", "all") == of_owner("two", "all")


def test_without_keys_all_jobs_have_one_scope() -> None:
    assert of_owner("", "key") == of_owner("", "all") == of_owner("one", "all")


def test_a_scope_does_not_tell_the_owner() -> None:
    scope = of_owner(KEY, "key")
    assert scope.startswith("key:")
    assert len(scope) == len("key:") + 24
    assert KEY not in scope


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        (public(), "public"),
        (of_owner("", "key"), "all"),
        (of_owner("public", "key"), "key"),
        (of_owner("all", "key"), "key"),
        (of_job("public"), "job"),
        ("", "unknown"),
        ("keys", "unknown"),
    ],
)
def test_whose_a_scope_is_can_be_told(scope: str, kind: str) -> None:
    assert kind_of(scope) == kind
