"""Ray clusters: connecting to one, and functions that run there. Usage reports are off.

`ADDRESS` is that of a cluster that is running, e.g. `10.0.0.1:6379`, or `local` for one on this machine that ends with
the program. All machines need the same lignn, and must see the same files under the same paths.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lignn.errors import ConfigError, InputError

LOCAL = "local"
_PATIENCE = 5.0
"""Seconds to wait for an answer."""
_OBJECTS = 2**27
"""Bytes for the results of a local cluster, which are small."""


@contextmanager
def connected(address: str, cpus: int | None = None) -> Iterator[Any]:
    """Connect to a cluster and yield the module `ray`; the connection ends with the context.

    Args:
        address: of the cluster, or `local`.
        cpus: logical CPUs of a local cluster; None: those of the machine.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise ConfigError("--ray needs Ray: pip install 'lignn[ray]'") from error
    own: dict[str, Any] = {}
    _check(address)
    if address == LOCAL:
        own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _OBJECTS}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"--ray {address}: no Ray cluster answers there ({_first_line(error)})") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """Raise if nothing listens at an address: Ray itself would try again for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), _PATIENCE).close()
        except OSError as error:
            raise InputError(f"--ray {address}: no Ray cluster answers there ({error.strerror or error})") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
