import pytest

from shared.errors import SetupError
from shared.exposure import check_exposure, is_loopback, is_loopback_address
from shared.settings import load_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    check_exposure(load_settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "2001:db8::1"])
def test_anything_else_needs_keys_or_the_word_insecure(host: str) -> None:
    with pytest.raises(SetupError, match=r"MINI_VLLM_API_KEYS.*--insecure"):
        check_exposure(load_settings(host=host))
    with pytest.raises(SetupError):
        check_exposure(load_settings(host=host, api_keys=" ,\n\t", metrics_key="m"))
    check_exposure(load_settings(host=host, api_keys="k"))
    check_exposure(load_settings(host=host, admin_keys="k"))
    check_exposure(load_settings(host=host, api_keys_file="/etc/keys"))
    check_exposure(load_settings(host=host, insecure=True))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "[::1]"])
def test_what_is_published_on_loopback_may_listen_anywhere(address: str) -> None:
    assert is_loopback_address(address)
    check_exposure(load_settings(host="0.0.0.0", publish=address))


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "192.0.2.1", "localhost", "127.0.0.1:80"])
def test_what_is_published_beyond_it_needs_keys_wherever_it_listens(address: str) -> None:
    with pytest.raises(SetupError) as caught:
        check_exposure(load_settings(host="127.0.0.1", publish=address))
    assert caught.value.message == (
        f"MINI_VLLM_PUBLISH={address!r} can be reached from other machines, and no API keys are set: "
        "set MINI_VLLM_API_KEYS (`mini-vllm key` makes one), or MINI_VLLM_INSECURE=1 if anybody may "
        "use this service"
    )
    check_exposure(load_settings(host="0.0.0.0", publish=address, api_keys="k"))
