"""set_auth, the environment, AWS profiles; and that keys show up nowhere."""

import inspect
import logging
import os
import shutil
import socket
import ssl
import subprocess
import traceback

import fault_proxy
import pytest
import store_server

import moxing as mox
from moxing.framework.file.access import Settings, find_access
from moxing.framework.file.auth import get_client, get_settings, restore_settings
from moxing.framework.file.endpoints import parse_server, uses_path_style

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


def test_why_keys_are_refused(s3_folder):
    """The answer to HEAD has no body; the reason is asked for."""
    mox.file.write(f"{s3_folder}/x", "x")
    mox.file.set_auth(ak=store_server.ACCESS_KEY, sk="another")
    calls = (mox.file.exists, mox.file.read, mox.file.stat, mox.file.list_directory, mox.file.is_directory)
    for call in calls:
        with pytest.raises(mox.file.MoxFileRespException) as caught:
            call(f"{s3_folder}/x")
        assert caught.value.resp.code == "SignatureDoesNotMatch", call
        assert "the keys came from set_auth" in str(caught.value)
        # Also of a listing, which asks the bucket.
        assert caught.value.filename.rstrip("/") == f"{s3_folder}/x"
    with pytest.raises(mox.file.MoxFileRespException, match="SignatureDoesNotMatch"):
        mox.file.exists(s3_folder.rpartition("/")[0])


def test_a_bucket_that_is_not_there(s3_folder):
    for call in (mox.file.stat, mox.file.list_directory, mox.file.get_size):
        with pytest.raises(FileNotFoundError, match="no such bucket: 's3://nosuchbucket'"):
            call("s3://nosuchbucket")


def test_where_keys_come_from(tmp_path):
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
    assert (found.credentials.sk, found.region, found.credentials.source) == (
        *("P-%SK", "eu-west-1", "the AWS profile 'default'"),
    )
    assert found.endpoint.host == "s3.eu-west-1.amazonaws.com"
    work = find_access("s3", Settings(), {**env, "AWS_PROFILE": "work"})
    assert (work.credentials.ak, work.credentials.token, work.region) == ("W-AK", "W-T", "ap-1")
    assert (work.endpoint.host, work.endpoint.secure) == ("w", False)
    env |= {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "A-SK", "AWS_SESSION_TOKEN": "A-T"}
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


def test_a_wrong_address_says_where_it_came_from(tmp_path):
    with pytest.raises(ValueError, match="environment variable S3_ENDPOINT='nonsense://': expected a host"):
        find_access("s3", Settings(), {"S3_ENDPOINT": "nonsense://"})
    (tmp_path / "config").write_text("[default]\nendpoint_url=nonsense://\n")
    with pytest.raises(ValueError, match="AWS profile 'default': endpoint_url='nonsense://'"):
        find_access("s3", Settings(), {"AWS_CONFIG_FILE": str(tmp_path / "config"), "HOME": str(tmp_path)})


@pytest.mark.parametrize("server", ["", "http://host:port", "http://[x", "ftp://host", "host/path"])
def test_an_address_that_is_none(own_settings, server):
    with pytest.raises(ValueError, match="server="):
        mox.file.set_auth(server=server)


def test_virtual_hosts_where_the_cloud_wants_them():
    huawei = "obs.cn-north-4.myhuaweicloud.com"
    assert not uses_path_style(huawei, "data", True, None)
    assert not uses_path_style("s3.eu-west-1.amazonaws.com", "data", True, None)
    assert uses_path_style(huawei, "with.dots", True, None)
    assert uses_path_style(huawei, "Upper_case", True, None)
    assert uses_path_style("minio.example.com", "data", True, None)
    assert not uses_path_style("minio.example.com", "data", True, False)
    assert uses_path_style(huawei, "data", True, True)


def test_virtual_hosts_on_a_real_store(s3_folder, store, monkeypatch):
    """The server knows itself as store.localhost; no name server does."""
    original = socket.getaddrinfo
    asked = []

    def resolve(host, *args, **kwargs):
        asked.append(host)
        return original("127.0.0.1" if str(host).endswith(".localhost") else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    mox.file.set_auth(server=f"http://store.localhost:{store.port}", path_style=False)
    mox.file.write(f"{s3_folder}/a b", "virtual")
    mox.file.write(f"{s3_folder}/c", "x")
    assert mox.file.list_directory(s3_folder) == ["a b", "c"]
    assert "tests.store.localhost" in asked
    mox.file.set_auth(path_style=True)
    assert mox.file.read(f"{s3_folder}/a b") == "virtual"


def test_a_change_of_settings_counts_at_once(s3_folder, monkeypatch):
    mox.file.write(f"{s3_folder}/a", "x")
    monkeypatch.setenv("SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(mox.file.MoxFileRespException, match="SECRET_ACCESS_KEY"):
        mox.file.read(f"{s3_folder}/a")
    mox.file.set_auth(ak=store_server.ACCESS_KEY, sk=SECRET)
    assert mox.file.read(f"{s3_folder}/a") == "x"
    client = get_client("s3")
    assert get_client("s3") is client


@pytest.mark.parametrize("source", ["set_auth", "environment", "profile", "none"])
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


@pytest.mark.parametrize("there", ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "profile"])
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


@pytest.mark.parametrize(("given", "missing"), [("ak", "sk"), ("sk", "ak")])
def test_one_key_alone_is_refused(own_settings, given, missing):
    with pytest.raises(ValueError, match=f"{missing}: expected with {given}"):
        mox.file.set_auth(**{given: "x"})
    mox.file.set_auth(ak="a", sk="b")
    mox.file.set_auth(**{given: "x"})  # the other one is known


@pytest.mark.parametrize("read", [mox.file.read, mox.file.File])
def test_a_read_tells_of_a_missing_bucket(proxy, s3_folder, read):
    proxy.fail("no_bucket", 1)
    with pytest.raises(mox.file.MoxFileNotExistsException, match="the bucket does not exist .GET: 404 NoSuchBucket"):
        read(f"{s3_folder}/a")
    assert len(proxy.requests) == 1


def test_a_missing_bucket(s3_folder):
    url = "s3://no-such-bucket-here"
    assert not mox.file.exists(f"{url}/a")
    assert not mox.file.exists(url)
    assert not mox.file.is_directory(url)
    for call in (mox.file.read, mox.file.stat, mox.file.list_directory, mox.file.make_dirs):
        with pytest.raises(mox.file.MoxFileNotExistsException):
            call(f"{url}/a")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="NoSuchBucket"):
        mox.file.write(f"{url}/a", "x")


def test_a_store_that_nobody_answers_for(own_settings):
    mox.file.set_auth("a", "b", "http://127.0.0.1:1", retry=1, retry_wait=0)
    with pytest.raises(
        mox.file.MoxFileRespException, match=r"NoConnection: nobody answers there \(127.0.0.1:1\), after 2"
    ) as caught:
        mox.file.exists("s3://bucket/a")
    assert caught.value.resp.status == 0


def test_a_host_that_nobody_knows(own_settings, monkeypatch):
    def resolve(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    mox.file.set_auth("a", "b", "http://store.example.com", retry=0)
    with pytest.raises(mox.file.MoxFileRespException, match=r"the name of the host is not known \(store.example.com\)"):
        mox.file.exists("s3://bucket/a")


def test_https_where_plain_http_is_spoken(s3_folder, store):
    mox.file.set_auth(server=f"127.0.0.1:{store.port}", retry=0)
    with pytest.raises(mox.file.MoxFileRespException, match="https was tried.*http:// before.*S3_USE_HTTPS=0"):
        mox.file.exists(s3_folder)


@pytest.mark.parametrize("operation", ["copy", "copy_parallel", "rename"])
def test_a_copy_inside_the_store_into_a_bucket_that_is_not_there(proxy, s3_folder, operation):
    """It is not the source that is missing. (The store of the tests has no words for it.)"""
    mox.file.write(f"{s3_folder}/d/a", "x")
    names = ("d", "d") if operation == "copy_parallel" else ("d/a", "a")
    proxy.fail("no_bucket", 1, lambda method, target: method == "PUT")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="NoSuchBucket") as caught:
        getattr(mox.file, operation)(f"{s3_folder}/{names[0]}", f"s3://no-such-bucket-here/{names[1]}")
    assert caught.value.filename.startswith("s3://no-such-bucket-here/")
    assert mox.file.read(f"{s3_folder}/d/a") == "x"
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        getattr(mox.file, operation)(f"{s3_folder}/none", f"{s3_folder}/copy")


def test_a_child_of_a_fork_makes_connections_of_its_own(s3_folder):
    mox.file.write(f"{s3_folder}/a", "x" * 1000)
    client = get_client("s3")
    child = os.fork()
    if child == 0:
        try:
            fresh = get_client("s3") is not client
            same = all(mox.file.read(f"{s3_folder}/a") == "x" * 1000 for _ in range(20))
            os._exit(0 if fresh and same else 1)
        except BaseException:
            os._exit(2)
    assert all(mox.file.read(f"{s3_folder}/a") == "x" * 1000 for _ in range(20))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_file_that_is_open_while_its_process_forks(s3_folder):
    """Its connection stays with the parent: two on one would read each other's bytes."""
    content = b"".join(n.to_bytes(8, "big") for n in range(1 << 18))
    mox.file.write(f"{s3_folder}/a", content, binary=True)

    def reads_right(f, seed):
        places = [(place * 7919 * seed) % (len(content) - 80_000) for place in range(1, 31)]
        return all((f.seek(place), f.read(80_000))[1] == content[place : place + 80_000] for place in places)

    with mox.file.File(f"{s3_folder}/a", "rb") as f:
        assert reads_right(f, 1)
        children = []
        for seed in (2, 3):
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    os._exit(0 if reads_right(f, seed) else 1)
                except BaseException:
                    os._exit(2)
        assert reads_right(f, 5)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]


def test_connections_are_kept_or_not(proxy, s3_folder):
    mox.file.write(f"{s3_folder}/a", "x")
    for keep in (True, False):
        mox.file.set_auth(long_conn_mode=keep)
        before = proxy.connections
        for _ in range(5):
            mox.file.read(f"{s3_folder}/a")
            mox.file.exists(f"{s3_folder}/none")
        assert (proxy.connections - before <= 1) is keep


@pytest.fixture
def tls_proxy(store, s3_folder, tmp_path):
    """The store behind TLS, with a certificate that nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with fault_proxy.FaultProxy(store.port, context) as running:
        yield running


def test_https(tls_proxy, s3_folder, tmp_path):
    mox.file.set_auth(server=tls_proxy.endpoint, retry=2, retry_wait=0.01)
    with pytest.raises(mox.file.MoxFileRespException, match="certificate.*ssl_verify"):
        mox.file.write(f"{s3_folder}/a", "x")
    assert tls_proxy.requests == []
    mox.file.set_auth(ssl_verify=False)
    mox.file.write(f"{s3_folder}/a", "x")
    assert mox.file.read(f"{s3_folder}/a") == "x"
    assert tls_proxy.headers[0]["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert tls_proxy.headers[0]["content-md5"]
    (tmp_path / "large").write_bytes(bytes(20 << 20))
    tls_proxy.fail("damage_upload", 1)
    mox.file.copy(tmp_path / "large", f"{s3_folder}/large")
    tls_proxy.fail("truncate", 1)
    mox.file.copy(f"{s3_folder}/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == bytes(20 << 20)
    mox.file.remove(s3_folder, recursive=True)
    assert not mox.file.exists(s3_folder)
