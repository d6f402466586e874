"""Render docs/settings.md from the settings of the services, or check that it is fresh.

    python tools/settingsdoc.py [--check]

The kit writes the page; each service's settings say what they are and what they are without.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from fangcheng_kit import Settings
from fangcheng_kit.settings import reference

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
SERVICES = ("evaluation", "table", "matchmaking", "wallet", "console")
# Read by the command and the rules, which have no settings of the kit: variable, default, meaning.
BESIDES = (
    (
        "FANGCHENG_STATE",
        "`~/.local/state/fangcheng`",
        "State folder of the command `fangcheng`; its option `--state` wins.",
    ),
    (
        "FANGCHENG_TOKEN",
        "",
        "Bearer token for services that are named: of an operator or a service; for "
        "`fangcheng play`, of the player. The option `--token` wins.",
    ),
    (
        "FANGCHENG_SIGNING_KEY",
        "",
        "File with a private key (PEM) that `fangcheng token` signs with, and the console's "
        "commands; their option `--signing-key` wins.",
    ),
    (
        "FANGCHENG_SIGNING_KEY_ID",
        "",
        "The id that this key has in the key set; the option `--kid` wins.",
    ),
    (
        "FANGCHENG_CACHE_DIR",
        "`~/.cache/fangcheng`",
        "Folder for tables and compiled code of the rules. What lies in it is run: "
        "keep it from others.",
    ),
    ("FANGCHENG_INTERPRETED", "", "1: the rules run interpreted although numba is there."),
)
NOTE = "<!-- Generated from the services' settings.py by `make docs`; change it there. -->\n\n"


def settings_of(service: str) -> type[Settings]:
    """The one class of settings that a service declares."""
    module = importlib.import_module(f"fangcheng_{service}.settings")
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Settings)
        and value.__module__ == module.__name__
    )
    return found


def main(check: bool) -> None:
    """Write the page, or with ``check`` fail where it is not what would be written."""
    page = NOTE + reference({service: settings_of(service) for service in SERVICES})
    page += "\n## Beside the services\n\n| variable | default | what it is |\n| --- | --- | --- |\n"
    page += "".join(f"| `{name}` | {default} | {what} |\n" for name, default, what in BESIDES)
    if not check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} is not fresh: run `make docs`")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
