"""Access to object stores."""

from __future__ import annotations

from typing import NoReturn

from moxing.framework.file.errors import UnsupportedSchemeError


def set_auth(
    ak: str | None = None,
    sk: str | None = None,
    server: str | None = None,
    port: int | None = None,
    is_secure: bool | None = None,
    ssl_verify: bool | None = None,
    long_conn_mode: bool | None = None,
    path_style: bool | None = None,
    retry: int | None = None,
    retry_wait: float | None = None,
    client_timeout: float | None = None,
    list_max_keys: int | None = None,
) -> NoReturn:
    """Sets how object stores are reached. This version has none, so it always raises.

    Raises:
      UnsupportedSchemeError: Always.

    Example:
      >>> import moxing as mox
      >>> try:
      ...     mox.file.set_auth(server='https://store.example.com')
      ... except mox.file.UnsupportedSchemeError as error:
      ...     print(str(error)[:8])
      set_auth
    """
    raise UnsupportedSchemeError(
        "set_auth: object stores (s3://, obs://) are not available in this version. "
        "Only local paths and file:// work, and they need no keys: leave the call out."
    )
