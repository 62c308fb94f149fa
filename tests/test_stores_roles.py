"""Credentials of instances and containers, from endpoints on loopback; and what is said once they have run out."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from buckets import FaultServer, built
from generated_games import write_games
from web_servers import served

import gristmill as gm
from gristmill import stores

#: What credentials of an instance or of a container are, as the server of buckets has them.
ROLE = {
    "Code": "Success",
    "Type": "AWS-HMAC",
    "AccessKeyId": "test",
    "SecretAccessKey": "testtest",
    "Token": "a token",
    "LastUpdated": "2026-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    folder = tmp_path_factory.mktemp("roles")
    write_games(folder / "games", 4)
    (folder / "roles").mkdir()
    gm.pack(folder / "games", folder / "roles" / "chess")
    with FaultServer(built(), folder) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_else(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment without credentials, and a home without profiles."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.address)
    stores.cache(tmp_path / "twins")
    yield
    server.mend()
    stores.cache()


def role() -> bytes:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    return json.dumps({**ROLE, "Expiration": soon.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()


def test_an_instance_has_the_credentials_of_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        asked.append((method, path))
        if (method, path) == ("PUT", "/latest/api/token"):
            return 200, {}, b"session"
        if headers.get("x-aws-ec2-metadata-token") != "session":
            return 401, {}, b""
        roles = "/latest/meta-data/iam/security-credentials/"
        return (
            (200, {}, b"reader") if path == roles else (200, {}, role()) if path == roles + "reader" else (404, {}, b"")
        )

    with served(answer) as address:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", address)
        stores.reach("s3://roles", patience=10)
        assert len(gm.open("s3://roles/chess")) > 10
    assert len(asked) == 3, "credentials are kept until they run out"


def test_a_container_has_the_credentials_of_its_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if (method, path, headers.get("authorization")) != ("GET", "/v1/credentials", "a container"):
            return 403, {}, b""
        return 200, {}, role()

    (tmp_path / "token").write_text("a container")
    with served(answer) as address:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{address}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
        stores.reach("s3://roles", patience=10)
        assert len(gm.open("s3://roles/chess")) > 10


def test_credentials_that_have_run_out_are_refused_with_what_to_do(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testtest")
    stores.reach("s3://roles", patience=10)
    server.fail("expired_token")
    with pytest.raises(PermissionError, match=r"ExpiredToken.*have run out; log in again.*s3://roles/chess"):
        gm.open("s3://roles/chess")
    assert stores.requests()["s3://roles"].retries == 0
