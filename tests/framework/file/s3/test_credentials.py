"""Credentials from botocore's chain, with real servers in place of the cloud's, on a real store."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import moxing as mox
from moxing.framework.file.auth import Settings, restore_settings
from moxing.framework.file.s3 import credentials
from moxing.framework.file.s3.access import VARIABLES, find_access
from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.credentials import Profile, has_botocore

sys.path.insert(0, str(Path(__file__).parent))
from credential_server import CredentialServer  # noqa: E402
from signed_store import SignedStore  # noqa: E402

needs_botocore = pytest.mark.skipif(not has_botocore(), reason="botocore is not installed: pip install '.[s3]'")


KEYS = ("TEMPORARY", "temporary-secret")


@pytest.fixture
def store(monkeypatch, tmp_path, own_settings):
    """A store that takes temporary keys. No keys are set in the environment, and the home directory is empty."""
    restore_settings(Settings())
    mox.file.set_auth(retry=1, retry_wait=0.01)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with SignedStore(*KEYS) as store:
        monkeypatch.setenv("S3_ENDPOINT", store.endpoint)
        yield store


@pytest.fixture
def cloud(store):
    """The credential endpoints of a cloud."""
    with CredentialServer(*KEYS) as server:
        yield server


def write_config(tmp_path, text):
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws" / "config").write_text(text)


@needs_botocore
def test_an_instance_role(cloud, store, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", cloud.url)
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    mox.file.write("s3://bucket/a", "x")
    assert mox.file.read("s3://bucket/a") == "x"
    assert store.tokens == ["token-1", "token-1"]
    assert cloud.requests.count("/latest/meta-data/iam/security-credentials/my-role") == 1
    assert get_client("s3").credentials_source() == "botocore (iam-role)"


@needs_botocore
def test_a_container_role_is_refreshed_before_it_expires(cloud, store, monkeypatch):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{cloud.url}/container")
    cloud.minutes = 5
    mox.file.write("s3://bucket/a", "x")
    cloud.minutes = 60
    for _ in range(3):
        assert mox.file.read("s3://bucket/a") == "x"
    # Five minutes are too few: the next request fetches new keys, which then serve.
    assert store.tokens[0] != store.tokens[1]
    assert store.tokens[1:] == [store.tokens[1]] * 3
    assert cloud.requests.count("/container") == int(store.tokens[1].removeprefix("token-"))
    assert store.refused == 0


@needs_botocore
def test_web_identity_as_in_kubernetes(cloud, store, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("a-jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/training")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", cloud.url)
    mox.file.write("s3://bucket/a", "x")
    assert store.tokens == ["token-1"]
    assert cloud.requests == ["AssumeRoleWithWebIdentity"]
    assert get_client("s3").credentials_source() == "botocore (assume-role-with-web-identity)"


@needs_botocore
def test_an_assumed_role(cloud, store, monkeypatch, tmp_path):
    write_config(
        tmp_path,
        "[default]\naws_access_key_id = A\naws_secret_access_key = S\n"
        "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/training\nsource_profile = default\n",
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", cloud.url)
    mox.file.write("s3://bucket/a", "x")
    assert (store.tokens, cloud.requests) == (["token-1"], ["AssumeRole"])


@needs_botocore
def test_single_sign_on(cloud, store, monkeypatch, tmp_path):
    """In a process of its own: botocore looks for the directory of SSO tokens when it is imported."""
    write_config(
        tmp_path,
        "[default]\nsso_session = me\nsso_account_id = 123456789012\nsso_role_name = training\nregion = us-east-1\n"
        "[sso-session me]\nsso_region = us-east-1\nsso_start_url = https://me.awsapps.com/start\n",
    )
    cache = tmp_path / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    token = {"accessToken": "t", "expiresAt": "2099-01-01T00:00:00Z", "startUrl": "x", "region": "us-east-1"}
    (cache / f"{hashlib.sha1(b'me').hexdigest()}.json").write_text(json.dumps(token))
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", cloud.url)
    code = "import moxing as mox; mox.file.write('s3://bucket/a', 'x'); print(mox.file.read('s3://bucket/a'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "x\n", done.stderr
    assert cloud.requests == ["/federation/credentials"]


@needs_botocore
def test_a_role_that_is_refused_is_an_error_at_once(cloud, store, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("a-jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/training")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", cloud.url)
    cloud.refuse = True
    with pytest.raises(mox.file.MoxFileRespException, match="NoCredentials: botocore: .*AccessDenied") as caught:
        mox.file.read("s3://bucket/a")
    assert caught.value.errno == 13
    assert caught.value.filename == "s3://bucket/a"
    assert store.tokens == []


@pytest.mark.slow
@needs_botocore
def test_credentials_that_cannot_be_fetched_are_asked_for_again(cloud, store, monkeypatch):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{cloud.url}/container")
    cloud.refuse = True
    with pytest.raises(OSError, match=r"CredentialsUnavailable: botocore: (?s:.*), after 2 attempts"):
        mox.file.read("s3://bucket/a")
    cloud.refuse = False
    mox.file.write("s3://bucket/a", "x")
    assert mox.file.read("s3://bucket/a") == "x"


@needs_botocore
def test_set_auth_and_the_environment_come_first(cloud, store, monkeypatch):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{cloud.url}/container")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS[1])
    mox.file.write("s3://bucket/a", "x")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    mox.file.set_auth(ak=KEYS[0], sk=KEYS[1])
    mox.file.write("s3://bucket/a", "x")
    assert (store.tokens, cloud.requests) == ([None, None], [])


@needs_botocore
def test_the_copy_workers_of_many_files_find_the_same_role(cloud, store, monkeypatch, tmp_path):
    from moxing.framework.file.copying import run_plan

    monkeypatch.setattr(run_plan, "_FILES_PER_PROCESS", 5)
    monkeypatch.setattr(run_plan, "_BATCH", 2)
    monkeypatch.setattr(run_plan.os, "cpu_count", lambda: 8)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{cloud.url}/container")
    for number in range(20):
        (tmp_path / "src" / str(number)).parent.mkdir(exist_ok=True)
        (tmp_path / "src" / str(number)).write_text("x")
    mox.file.copy_parallel(tmp_path / "src", "s3://bucket/d")
    assert len(mox.file.list_directory("s3://bucket/d")) == 20


@pytest.mark.parametrize("is_named", [True, False])
def test_a_profile_without_botocore_names_the_extra(tmp_path, monkeypatch, is_named):
    monkeypatch.setattr(credentials, "has_botocore", lambda: False)
    write_config(tmp_path, "[default]\naws_access_key_id = A\naws_secret_access_key = S\n")
    env = {"HOME": str(tmp_path), "S3_ENDPOINT": "store", **({"AWS_PROFILE": "work"} if is_named else {})}
    with pytest.raises(ValueError, match=r"profile|PROFILE.*pip install 'moxing-tensorflow\[s3\]'") as caught:
        find_access("s3", Settings(), env)
    assert "'work'" in str(caught.value) if is_named else "'default'" in str(caught.value)
    if not is_named:
        # Not in use: everything is known without it.
        env |= {"ACCESS_KEY_ID": "M", "SECRET_ACCESS_KEY": "M-SK"}
        assert find_access("s3", Settings(), env).credentials.ak == "M"


def test_keys_do_not_show():
    assert "secret" not in repr(credentials.Credentials("AK", "very-secret", "secret-token", "set_auth"))
    assert Profile.find({"HOME": "/h", "AWS_PROFILE": "p"}) == Profile(
        "p", True, ("/h/.aws/credentials", "/h/.aws/config")
    )
