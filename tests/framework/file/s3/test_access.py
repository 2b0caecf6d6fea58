"""Where endpoint, region and keys come from; keys never show."""

import logging
import traceback

import pytest
import store_server

import moxing as mox
from moxing.framework.file.auth import Settings, get_settings, restore_settings
from moxing.framework.file.s3.access import find_access
from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.credentials import has_botocore
from moxing.framework.file.s3.endpoints import parse_server

needs_botocore = pytest.mark.skipif(not has_botocore(), reason="botocore is not installed: pip install '.[s3]'")


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_where_keys_come_from():
    env = {
        "HOME": "/no/such/home",
        "AWS_ACCESS_KEY_ID": "A",
        "AWS_SECRET_ACCESS_KEY": "A-SK",
        "AWS_SESSION_TOKEN": "A-T",
    }
    assert find_access("s3", Settings(), env).credentials.token == "A-T"
    env |= {"OBS_ACCESS_KEY_ID": "O", "OBS_SECRET_ACCESS_KEY": "O-SK", "OBS_SERVER": "obs.cn-north-4.myhuaweicloud.com"}
    obs = find_access("obs", Settings(), env)
    assert (obs.credentials.ak, obs.endpoint.host, obs.endpoint.secure) == ("O", env["OBS_SERVER"], True)
    assert find_access("obs", Settings(), {"OBS_SERVER": env["OBS_SERVER"]}).region == "cn-north-4"
    assert find_access("s3", Settings(), env).credentials.ak == "A"
    env |= {"ACCESS_KEY_ID": "M", "SECRET_ACCESS_KEY": "M-SK"}
    assert find_access("obs", Settings(), env).credentials.ak == "M"
    assert "ACCESS_KEY_ID" in find_access("s3", Settings(), env).credentials.source
    assert find_access("s3", Settings(ak="X", sk="Y"), env).credentials.source == "set_auth"


@needs_botocore
def test_keys_of_profiles(tmp_path):
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = P-AK\naws_secret_access_key = P-%SK\n"
        "[work]\naws_access_key_id = W-AK\naws_secret_access_key = W-SK\naws_session_token = W-T\n"
    )
    (home / ".aws" / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile work]\nregion = ap-1\nendpoint_url = http://w:1\n"
    )
    env = {"HOME": str(home)}
    found = find_access("s3", Settings(), env)
    keys = found.credentials.current()
    assert (keys.sk, found.region, keys.source) == ("P-%SK", "eu-west-1", "the AWS profile 'default'")
    assert found.endpoint.host == "s3.eu-west-1.amazonaws.com"
    work = find_access("s3", Settings(), {**env, "AWS_PROFILE": "work"})
    keys = work.credentials.current()
    assert (keys.ak, keys.token, work.region) == ("W-AK", "W-T", "ap-1")
    assert (work.endpoint.host, work.endpoint.secure) == ("w", False)
    env |= {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "A-SK", "AWS_SESSION_TOKEN": "A-T"}
    assert find_access("s3", Settings(), env).credentials.token == "A-T"


def test_where_the_endpoint_comes_from():
    def endpoint(scheme="s3", settings=None, **env):
        return tuple(find_access(scheme, settings or Settings(), env).endpoint)

    assert endpoint(S3_ENDPOINT="a:9000", S3_USE_HTTPS="0") == ("a", 9000, False)
    assert endpoint(S3_ENDPOINT="http://a", S3_USE_HTTPS="1") == ("a", 80, False)
    assert endpoint(AWS_ENDPOINT_URL="http://b", AWS_ENDPOINT_URL_S3="http://c") == ("c", 80, False)
    assert endpoint(settings=Settings(server="d", port=1), S3_ENDPOINT="a") == ("d", 1, True)
    assert endpoint(AWS_REGION="eu-x-1") == ("s3.eu-x-1.amazonaws.com", 443, True)
    assert find_access("s3", Settings(), {"S3_VERIFY_SSL": "0"}).verify is False
    with pytest.raises(ValueError, match="OBS_SERVER"):
        endpoint("obs")
    with pytest.raises(ValueError, match="S3_USE_HTTPS='maybe'"):
        endpoint(S3_USE_HTTPS="maybe")
    with pytest.raises(ValueError, match="AWS_PROFILE='none'"):
        endpoint(AWS_PROFILE="none", HOME="/no/such/home")
    assert parse_server("[::1]:9000", None, False, explicit=False).host_header("::1") == "[::1]:9000"


@pytest.mark.parametrize("rest", ["", "/bucket", ":port", "?a", "/", ":9000/b?c", "]", "℀"])
@pytest.mark.parametrize("key", ["very-secret", "very/secret", "very#secret", "very?secret"])
def test_an_address_with_keys_in_it_is_not_shown(own_settings, rest, key):
    for server in (f"https://AKIA:{key}@store.example.com{rest}", f"AKIA:{key}@store.example.com{rest}"):
        for ask in (
            lambda server=server: mox.file.set_auth(server=server),
            lambda server=server: find_access("s3", Settings(), {"S3_ENDPOINT": server}),
        ):
            with pytest.raises(ValueError, match="without user name and password") as caught:
                ask()
            assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_wrong_address_says_where_it_came_from():
    with pytest.raises(ValueError, match="environment variable S3_ENDPOINT='nonsense://': expected a host"):
        find_access("s3", Settings(), {"S3_ENDPOINT": "nonsense://"})


@needs_botocore
def test_a_wrong_address_in_a_profile(tmp_path):
    (tmp_path / "config").write_text("[default]\nendpoint_url=nonsense://\n")
    with pytest.raises(ValueError, match="AWS profile 'default': endpoint_url='nonsense://'"):
        find_access("s3", Settings(), {"AWS_CONFIG_FILE": str(tmp_path / "config"), "HOME": str(tmp_path)})


@pytest.mark.parametrize("source", ["set_auth", "environment", pytest.param("profile", marks=needs_botocore), "none"])
def test_a_refusal_names_the_source_and_not_the_key(s3_folder, monkeypatch, tmp_path, source, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    ak, sk = store_server.ACCESS_KEY, "wrong-key-that-must-not-be-shown"
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = "no credentials were found"
    if source == "set_auth":
        mox.file.set_auth(ak=ak, sk=sk)
        expected = "came from set_auth"
    elif source == "environment":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ak)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sk)
        expected = "AWS_SECRET_ACCESS_KEY"
    elif source == "profile":
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws" / "credentials").write_text(
            f"[default]\naws_access_key_id={ak}\naws_secret_access_key={sk}\n"
        )
        expected = "AWS profile 'default'"
    with pytest.raises(mox.file.MoxFileRespException, match=expected) as caught:
        mox.file.read(f"{s3_folder}/a")
    assert (caught.value.resp.status, caught.value.errno) == (403, 13)
    client = get_client("s3")
    shown = [
        str(caught.value),
        repr(caught.value),
        repr(caught.value.resp),
        "".join(traceback.format_exception(caught.value)),
    ]
    shown += [repr(client.access), str(client.access), repr(get_settings()), caplog.text, *capfd.readouterr()]
    for text in shown:
        assert sk not in text
        assert ak not in text
        assert "Signature=" not in text


@pytest.mark.parametrize("there", ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", pytest.param("profile", marks=needs_botocore)])
def test_half_of_the_keys(s3_folder, monkeypatch, tmp_path, there):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY"} - {there}:
        monkeypatch.delenv(name)
        expected = f"{there} is set, {name} is not"
    if there == "profile":
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws" / "credentials").write_text("[default]\naws_access_key_id=a\n")
        expected = "AWS profile 'default' has no aws_secret_access_key"
    with pytest.raises(mox.file.MoxFileRespException, match=f"no credentials were found: .*{expected}"):
        mox.file.read(f"{s3_folder}/a")
