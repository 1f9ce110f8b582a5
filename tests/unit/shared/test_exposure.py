import pytest

from shared.errors import SetupError
from shared.exposure import check_exposure, is_loopback
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
