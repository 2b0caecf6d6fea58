"""`set_auth`."""

import inspect

import pytest
import store_server

import moxing as mox
from moxing.framework.file.auth import Settings, get_settings, restore_settings
from moxing.framework.file.s3.access import find_access

NAMES = [
    *("ak", "sk", "server", "port", "is_secure", "ssl_verify", "long_conn_mode", "path_style", "retry"),
    *("retry_wait", "client_timeout", "list_max_keys"),
]
#: Scripts give these as well.
BEYOND = ["negotiation", "obs_client_log"]
SECRET = store_server.SECRET_KEY


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_the_signature_is_the_documented_one():
    parameters = inspect.signature(mox.file.set_auth).parameters
    assert list(parameters) == [*NAMES, *BEYOND]
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in BEYOND)
    assert all(parameter.default is None for parameter in parameters.values())


def test_settings_are_merged():
    mox.file.set_auth("AK", "SK", "store.example.com", 9000, False, False, True, True, 3, 0.5, 7, 10)
    mox.file.set_auth(**dict.fromkeys(NAMES))
    mox.file.set_auth(retry=0, path_style=False)
    found = find_access("s3", get_settings(), {})
    assert (found.endpoint.host, found.endpoint.port, found.endpoint.secure) == ("store.example.com", 9000, False)
    assert (found.retry, found.retry_wait, found.timeout, found.list_max_keys) == (0, 0.5, 7, 10)
    assert (found.path_style, found.verify, found.keep_alive) == (False, False, True)
    assert (found.credentials.ak, found.credentials.sk) == ("AK", "SK")
    mox.file.set_auth(long_conn_mode=False)
    assert find_access("s3", get_settings(), {}).keep_alive is False


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("value", [True, False])
def test_one_kind_of_signature_and_no_log(name, value):
    mox.file.set_auth(**{name: value})
    assert get_settings() == Settings()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"ak": ""}, {"sk": 3}, {"ak": "AK"}, {"sk": "SK"}, {"server": ""}, {"server": "ftp://x"}, {"server": "a/b"}),
        *({"sk": "SECRET\n", "ak": "AK"}, {"ak": "A K", "sk": "SECRET"}),
        *({"port": 0}, {"port": 70000}, {"port": "80"}, {"port": True}, {"is_secure": 1}, {"ssl_verify": "no"}),
        *({"long_conn_mode": 0}, {"path_style": "x"}, {"retry": -1}, {"retry": 1.5}, {"retry_wait": -1}),
        *({"client_timeout": 0}, {"client_timeout": "5"}, {"list_max_keys": 0}, {"list_max_keys": 1001}),
        *({"server": "host:99999"}, {"server": "https://AK:SECRET@host"}, {"negotiation": "no"}, {"obs_client_log": 0}),
    ],
)
def test_wrong_values_change_nothing(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
        mox.file.set_auth(retry_wait=wrong.pop("retry_wait", 2.5), **wrong)
    assert get_settings() == Settings()
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("server", ["", "http://host:port", "http://[x", "ftp://host", "host/path"])
def test_an_address_that_is_none(own_settings, server):
    with pytest.raises(ValueError, match="server="):
        mox.file.set_auth(server=server)


@pytest.mark.parametrize(("given", "missing"), [("ak", "sk"), ("sk", "ak")])
def test_one_key_alone_is_refused(own_settings, given, missing):
    with pytest.raises(ValueError, match=f"{missing}: expected with {given}"):
        mox.file.set_auth(**{given: "x"})
    mox.file.set_auth(ak="a", sk="b")
    mox.file.set_auth(**{given: "x"})  # the other one is known
