"""The profiles of the AWS command line: keys, region and endpoint in `~/.aws`."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url")


def profile_files(env: Mapping[str, str]) -> tuple[str, str]:
    """The files of credentials and of settings.

    Example:
      >>> profile_files({'HOME': '/home/me'})
      ('/home/me/.aws/credentials', '/home/me/.aws/config')
    """
    home = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".aws")
    return (
        env.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials"),
        env.get("AWS_CONFIG_FILE") or os.path.join(home, "config"),
    )


def read_profile(env: Mapping[str, str]) -> dict[str, str]:
    """What the profile that `AWS_PROFILE` names, or the default one, says. A profile that is missing is an error only
    if it was asked for.

    Example:
      >>> read_profile({'HOME': '/no/such/home'})
      {'name': 'default'}
    """
    wanted = env.get("AWS_PROFILE")
    name = wanted or "default"
    found = {"name": name}
    seen = False
    for path, section in zip(profile_files(env), (name, f"profile {name}"), strict=True):
        if not os.path.isfile(path):
            continue
        # In the settings the default profile has no word before its name.
        sections = _read(path)
        for candidate in dict.fromkeys((section, name)):
            if candidate in sections:
                seen = True
                found.update({k: v for k, v in sections[candidate].items() if k in _NAMES and k not in found and v})
                break
    if wanted and not seen:
        raise ValueError(f"environment variable AWS_PROFILE={wanted!r}: there is no such profile in ~/.aws.")
    return found


def _read(path: str) -> dict[str, dict[str, str]]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (Error, UnicodeDecodeError):
        # Without the cause: it shows the line, which may be a key.
        raise ValueError(f"{path}: cannot be read as an AWS profile file.") from None
    return {section: dict(parser[section]) for section in parser.sections()}
