"""Stores of other packages -> places of gristmill, and how these are reached. Imports none of those packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

#: Names of settings that say where a store is, and not how it is reached.
_WHERE = ("bucket", "container_name", "endpoint")

#: By the class of a store of obstore: the scheme, and the setting with the name of the bucket.
_OF_OBSTORE = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


def place_of(store: Any, path: str) -> tuple[str, dict[str, Any] | None]:
    """The place of a path in a store, and the options of `gristmill.stores.reach`; `None` where none are needed.

    Raises:
        TypeError: another kind of store.
    """
    name, module = type(store).__name__, type(store).__module__.split(".")[0]
    if module == "obstore":
        return _of_obstore(store, name, path)
    if isinstance(getattr(store, "protocol", None), str | tuple | list) and hasattr(store, "storage_options"):
        return _of_fsspec(store, path)
    raise TypeError(f"expected a store of obstore or a file system of fsspec, found {module}.{name}")


def _of_obstore(store: Any, name: str, path: str) -> tuple[str, dict[str, Any] | None]:
    if name == "LocalStore":
        return os.path.join(os.fspath(store.prefix or "/"), path) if path else os.fspath(store.prefix or "/"), None
    if name == "HTTPStore":
        return _joined(store.url, path), None
    if name not in _OF_OBSTORE:
        raise TypeError(f"obstore's {name} has no place that can be read elsewhere; expected {', '.join(_OF_OBSTORE)}")
    scheme, bucket = _OF_OBSTORE[name]
    config: Mapping[str, str] = store.config
    place = _joined(f"{scheme}://{config[bucket]}", store.prefix or "", path)
    client: Mapping[str, Any] = store.client_options or {}
    return place, {
        "endpoint": config.get("endpoint"),
        "anonymous": str(config.get("skip_signature", "")).lower() == "true",
        "allow_http": str(client.get("allow_http", "")).lower() == "true",
        "settings": {key: value for key, value in config.items() if key not in (*_WHERE, "skip_signature")},
    }


def _of_fsspec(store: Any, path: str) -> tuple[str, dict[str, Any] | None]:
    protocol = store.protocol if isinstance(store.protocol, str) else store.protocol[0]
    options: Mapping[str, Any] = store.storage_options
    if protocol in ("file", "local"):
        return path, None
    if protocol in ("http", "https"):
        return path, None
    if protocol not in ("s3", "s3a", "gs", "gcs"):
        raise TypeError(f"fsspec's file system `{protocol}` cannot be read here; expected s3, gs, http or file")
    client: Mapping[str, Any] = options.get("client_kwargs") or {}
    names = {"key": "access_key_id", "secret": "secret_access_key", "token": "session_token"}
    settings = {ours: options[theirs] for theirs, ours in names.items() if isinstance(options.get(theirs), str)}
    if isinstance(client.get("region_name"), str):
        settings["region"] = client["region_name"]
    endpoint = options.get("endpoint_url") or client.get("endpoint_url")
    anonymous = bool(options.get("anon")) or options.get("token") == "anon"
    scheme = "s3" if protocol.startswith("s3") else "gs"
    if scheme == "gs":
        settings = {}
    place = _joined(f"{scheme}://{path.partition('://')[2] or path}")
    how = {"endpoint": endpoint, "anonymous": anonymous, "settings": settings}
    return place, how | {"allow_http": str(endpoint or "").startswith("http://")}


def _joined(root: str, *parts: str) -> str:
    return "/".join([root.rstrip("/"), *(part.strip("/") for part in parts if part.strip("/"))])
