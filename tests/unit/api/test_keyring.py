import hashlib
from pathlib import Path

import pytest

from api.keyring import ANYBODY, Keyring, Role
from shared.errors import SetupError
from shared.settings import load_settings

HASHED = "sha256:" + hashlib.sha256(b"hashed-key").hexdigest()


def keyring(**settings: object) -> Keyring:
    return Keyring.from_settings(load_settings(**settings))


def test_without_keys_it_is_open() -> None:
    assert keyring().is_open
    assert keyring(api_keys=" , ").is_open
    assert ANYBODY.owner == ""


def test_keys_are_known_by_role_and_nothing_else_is() -> None:
    ring = keyring(api_keys=f"alice, bob,{HASHED}", admin_keys="root", metrics_key="scrape")
    assert not ring.is_open
    for key, role in (
        ("alice", Role.USER),
        ("bob", Role.USER),
        ("hashed-key", Role.USER),
        ("root", Role.ADMIN),
        ("scrape", Role.METRICS),
    ):
        caller = ring.identify(key)
        assert caller is not None
        assert caller.role is role
    for unknown in (None, "", "Alice", "alice ", HASHED, "ä", "\udcff"):
        assert ring.identify(unknown) is None


def test_an_owner_is_the_same_for_a_key_and_its_hash_and_gives_neither_away() -> None:
    plain = keyring(api_keys="hashed-key").identify("hashed-key")
    hashed = keyring(api_keys=HASHED).identify("hashed-key")
    other = keyring(api_keys="x").identify("x")
    assert plain == hashed
    assert plain is not None
    assert other is not None
    assert plain.owner != other.owner
    assert plain.owner not in HASHED


def test_a_ring_holds_no_key_itself() -> None:
    assert "alice" not in repr(keyring(api_keys="alice", admin_keys="root", metrics_key="m"))
    assert "alice" not in repr(load_settings(api_keys="alice"))


def test_keys_come_from_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# of the batch team\nalice\n\n  {HASHED}\n")
    ring = keyring(api_keys_file=path, api_keys="bob")
    assert all(ring.identify(key) for key in ("alice", "hashed-key", "bob"))
    assert not ring.identify("# of the batch team")


@pytest.mark.parametrize("text", [None, "", "# nothing\n", "two words\n", "sha256:abc\n", "ä\n"])
def test_a_file_that_is_no_use_is_refused_by_name(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "keys"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SetupError, match="MINI_VLLM_ADMIN_KEYS_FILE"):
        keyring(admin_keys_file=path)


def test_a_key_that_no_client_could_send_is_refused_without_showing_it() -> None:
    with pytest.raises(SetupError, match="MINI_VLLM_API_KEYS: key 2") as refused:
        keyring(api_keys="alice,secret key")
    assert "secret" not in str(refused.value)


def test_an_admin_sees_all_jobs_and_a_user_their_own() -> None:
    ring = keyring(api_keys="alice,bob", admin_keys="root")
    alice, bob, root = (ring.identify(key) for key in ("alice", "bob", "root"))
    assert alice
    assert bob
    assert root
    assert alice.may_see(alice.owner)
    assert not bob.may_see(alice.owner)
    assert not bob.may_see("")
    assert root.may_see(alice.owner)
    assert root.may_see("")
