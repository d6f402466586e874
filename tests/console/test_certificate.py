"""The page beyond this host: over TLS alone, with the newest certificate."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from fangcheng_console.settings import ConsoleSettings

from .world import KEY, console

MAKE = Path(__file__).parents[2] / "deploy" / "make-certificates.sh"
NOT_HERE = "0.0.0.0:0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of certificates, of two authorities."""
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    for folder in folders:
        subprocess.run(["sh", str(MAKE), str(folder)], check=True, capture_output=True)
    return folders


def settings(folder: Path) -> dict[str, object]:
    """What has the page served over TLS, with the certificate in a folder."""
    return {
        "web_listen": NOT_HERE,
        "public_url": "https://localhost:7103",
        "tls_certificate": folder / "tls.crt",
        "tls_key": folder / "tls.key",
    }


async def page(port: int, authority: Path) -> httpx.Response:
    """The page, by a browser that trusts an authority."""
    trusted = ssl.create_default_context(cafile=str(authority / "authority" / "ca.crt"))
    async with httpx.AsyncClient(verify=trusted) as client:
        return await client.get(f"https://localhost:{port}/", headers={"host": "localhost:7103"})


async def test_the_page_is_served_with_a_certificate_that_may_change(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    one, other = made
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_bytes((one / "tls" / "console" / name).read_bytes())
    async with console(tmp_path, **settings(tmp_path)) as world:
        port = int(world.address.rpartition(":")[2])
        assert (await page(port, one)).status_code == 200
        with pytest.raises(httpx.HTTPError, match=r"(?i)certificate"):
            await page(port, other)
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.HTTPError):  # not in plain text
                await client.get(f"http://localhost:{port}/")

        # One of two files is new: what was goes on.
        for name in ("tls.key", "tls.crt"):
            assert (await page(port, one)).status_code == 200
            draft = tmp_path / "new"
            draft.write_bytes((other / "tls" / "console" / name).read_bytes())
            draft.replace(tmp_path / name)
        while True:
            try:
                assert (await page(port, other)).status_code == 200
                break
            except httpx.HTTPError:
                await asyncio.sleep(0.05)


def test_on_this_host_the_page_is_plain_whatever_the_process_has(tmp_path: Path) -> None:
    on_this_host = settings(tmp_path) | {"web_listen": "127.0.0.1:7103"}
    assert not ConsoleSettings(dev_key=KEY, **on_this_host).web_over_tls
    assert ConsoleSettings(dev_key=KEY, **settings(tmp_path)).web_over_tls
