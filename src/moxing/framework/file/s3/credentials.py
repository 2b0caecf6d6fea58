"""Where the keys of a store come from: `set_auth`, environment variables, then the credential chain of botocore."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moxing.framework.file.errors import NO_CREDENTIALS_CODE
from moxing.framework.file.s3.responses import NO_CREDENTIALS

#: Environment variables of access key, secret key and session token. The scheme decides whose come first.
_MOXING_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN")
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_OBS_KEYS = ("OBS_ACCESS_KEY_ID", "OBS_SECRET_ACCESS_KEY", "OBS_SECURITY_TOKEN")
KEY_VARIABLES = {"s3": (_MOXING_KEYS, _AWS_KEYS, _OBS_KEYS), "obs": (_MOXING_KEYS, _OBS_KEYS, _AWS_KEYS)}
#: Variables that change what botocore finds.
CHAIN_VARIABLES = (
    *("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "HOME"),
    *("AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_STS"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    *("AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
)
INSTALL_HINT = "pip install 'moxing-tensorflow[s3]'"
#: How botocore names the providers that read a profile.
_PROFILE_METHODS = ("shared-credentials-file", "config-file")


class CredentialsError(OSError):
    """No credentials could be fetched. `code` says whether a retry may help."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


@dataclass(frozen=True)
class Credentials:
    """Keys and their source. Error messages may show the source, never the keys. Equal keys are equal credentials.

    Example:
      >>> Credentials('AK', 'very secret', None, 'set_auth')
      Credentials(source='set_auth')
    """

    ak: str | None = field(repr=False)
    sk: str | None = field(repr=False)
    token: str | None = field(repr=False)
    source: str = field(compare=False)

    def current(self) -> Credentials:
        """Returns the keys to sign the next request with."""
        return self


class CredentialsProvider(Protocol):
    """Gives the keys for the next request; they may change when they expire."""

    def current(self) -> Credentials:
        """Returns the keys to sign the next request with."""


def find_credentials(
    scheme: str, keys: tuple[str | None, str | None], env: Mapping[str, str], profile: Profile
) -> CredentialsProvider:
    """Returns the credentials for `s3://` or `obs://`: the keys of `set_auth`, of the environment, or of botocore.

    Example:
      >>> find_credentials('s3', ('AK', 'SK'), {}, Profile.find({'HOME': '/no/such/home'}))
      Credentials(source='set_auth')
    """
    if keys[0] and keys[1]:
        return Credentials(*keys, None, "set_auth")
    incomplete = ""
    for ak_name, sk_name, token_name in KEY_VARIABLES[scheme]:
        ak, sk = env.get(ak_name), env.get(sk_name)
        if ak and sk:
            source = f"the environment variables {ak_name} and {sk_name}"
            return Credentials(ak, sk, env.get(token_name) or None, source)
        if (ak or sk) and not incomplete:
            present, missing = (ak_name, sk_name) if ak else (sk_name, ak_name)
            incomplete = f"the environment variable {present} is set, {missing} is not"
    if has_botocore():
        return ChainCredentials(profile, incomplete)
    profile.check_readable("credentials")
    return _none(incomplete)


def _none(reason: str) -> Credentials:
    return Credentials(None, None, None, f"{NO_CREDENTIALS}: {reason}" if reason else NO_CREDENTIALS)


def has_botocore() -> bool:
    """Returns whether botocore is installed.

    Example:
      >>> isinstance(has_botocore(), bool)
      True
    """
    return importlib.util.find_spec("botocore") is not None


@dataclass(frozen=True)
class Profile:
    """The AWS profile in use: its name and the two files it is read from.

    Example:
      >>> Profile.find({'HOME': '/home/me'}).files
      ('/home/me/.aws/credentials', '/home/me/.aws/config')
    """

    name: str
    is_named: bool
    files: tuple[str, str]

    @classmethod
    def find(cls, env: Mapping[str, str]) -> Profile:
        """Returns the profile that `AWS_PROFILE` names, else the default one."""
        home = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".aws")
        files = (
            env.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials"),
            env.get("AWS_CONFIG_FILE") or os.path.join(home, "config"),
        )
        return cls(env.get("AWS_PROFILE") or "default", bool(env.get("AWS_PROFILE")), files)

    def exists(self) -> bool:
        """Returns whether the profile is named, or a file with profiles exists."""
        return self.is_named or any(os.path.isfile(path) for path in self.files)

    def check_readable(self, wanted: str) -> None:
        """Raises ValueError if `wanted` may be in a profile and botocore, which reads profiles, is missing."""
        if self.exists() and not has_botocore():
            where = f"AWS_PROFILE={self.name!r}" if self.is_named else f"AWS profile {self.name!r}"
            raise ValueError(
                f"{where}: reading the {wanted} of an AWS profile needs botocore: {INSTALL_HINT}. "
                "Or call mox.file.set_auth, or set ACCESS_KEY_ID, SECRET_ACCESS_KEY and S3_ENDPOINT."
            )

    def read(self) -> dict[str, str]:
        """Returns the settings of the profile, such as region and endpoint_url; empty if there is no profile."""
        if not self.exists():
            return {}
        from botocore.exceptions import BotoCoreError, ProfileNotFound

        try:
            return dict(self.open_session().get_scoped_config())
        except ProfileNotFound:
            raise ValueError(
                f"environment variable AWS_PROFILE={self.name!r}: there is no such profile in ~/.aws."
            ) from None
        except BotoCoreError:
            # Without the cause: it shows the line, which may contain a key.
            raise ValueError(f"{' or '.join(self.files)}: cannot be read as an AWS profile file.") from None

    def open_session(self) -> Any:
        """Returns a new session of botocore for this profile."""
        import botocore.session

        session = botocore.session.Session(profile=self.name if self.is_named else None)
        for name, path in zip(("credentials_file", "config_file"), self.files, strict=True):
            session.set_config_variable(name, path)
        return session


@dataclass
class ChainCredentials:
    """Credentials from botocore: profiles, SSO, assumed roles, web identity, container and instance roles.

    They are looked up with the first request and refreshed before they expire.
    """

    profile: Profile
    incomplete: str = ""
    _owner: int = field(default=0, repr=False, compare=False)
    _found: Any = field(default=None, repr=False, compare=False)

    def current(self) -> Credentials:
        """Returns the keys to sign the next request with.

        Raises:
          CredentialsError: A provider is configured, but it fails.
        """
        from botocore.exceptions import BotoCoreError, ClientError, PartialCredentialsError

        try:
            if self._owner != os.getpid():
                # In the child of a fork, a lock of the parent's session may be held by a thread that is not here.
                self._found, self._owner = self.profile.open_session().get_credentials(), os.getpid()
            if self._found is None:
                return _none(self.incomplete)
            keys = self._found.get_frozen_credentials()
        except PartialCredentialsError as error:
            missing = error.kwargs.get("cred_var", "key")
            return _none(self.incomplete or f"the AWS profile {self.profile.name!r} has no {missing}")
        except (BotoCoreError, ClientError) as error:
            raise CredentialsError(f"botocore: {error}", _failure_code(error)) from None
        return Credentials(keys.access_key, keys.secret_key, keys.token or None, self._describe())

    def _describe(self) -> str:
        method = self._found.method
        return f"the AWS profile {self.profile.name!r}" if method in _PROFILE_METHODS else f"botocore ({method})"


def _failure_code(error: Exception) -> str:
    """Returns "CredentialsUnavailable" if a retry may help: the endpoint of the credentials does not answer now."""
    from botocore.exceptions import CredentialRetrievalError, HTTPClientError, MetadataRetrievalError

    if isinstance(error, CredentialRetrievalError | HTTPClientError | MetadataRetrievalError):
        return "CredentialsUnavailable"
    return NO_CREDENTIALS_CODE
