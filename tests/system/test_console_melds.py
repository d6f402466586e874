"""Melds as a browser draws them: which tile lies on its side, and where it points to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from .browser import opened
from .running import Running

pytestmark = pytest.mark.system

SEATS = range(4)
TOWARDS = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Where on the screen the sides are: near, right, far, left; x to the right, y downwards."""

DRAWN = """
async ({state, perspective, narrow}) => {
  const { drawTable } = await import("/static/table.js");
  const { render } = await import("/static/lit.js");
  const place = document.createElement("div");
  document.body.replaceChildren(place);
  render(drawTable(state, {perspective, narrow}), place);
  const uses = [...place.querySelectorAll("[data-zone=meld] use")];
  while (!uses.every((use) => use.getBBox().width)) await new Promise(requestAnimationFrame);
  return [...place.querySelectorAll("[data-zone=meld]")].map((tile) => {
    const box = tile.querySelector("use").getBoundingClientRect();
    return {
      index: Number(tile.dataset.index.split(".")[1]),
      code: Number(tile.dataset.tile),
      at: [box.x + box.width / 2, box.y + box.height / 2],
      isWide: box.width > box.height,
      isTurned: tile.dataset.turned === "true",
      isCovered: tile.dataset.covered === "true",
    };
  });
}
"""


@pytest.fixture(scope="module")
def page(browser: Browser, quiet_suite: Running) -> Iterator[Page]:
    """The console's page, where nobody has signed in."""
    with opened(browser) as tab:
        tab.page.goto(f"{quiet_suite.console}/sign-in")
        tab.page.get_by_role("heading", level=1).wait_for()
        yield tab.page


def table(seat: int, meld: dict[str, Any]) -> dict[str, Any]:
    """A table's state at which one seat has laid down a meld, and nothing else lies."""
    seats = [
        {
            "player_id": f"p{number}",
            "name": f"P{number}",
            "concealed": [],
            "drawn": None,
            "melds": [meld] if number == seat else [],
            "river": [],
            "flowers": [],
            "declared": "",
            "piao": 0,
            "false_wins": 0,
            "connected": True,
            "trustee": False,
            "leaving": False,
            "ready": False,
            "standing": 0,
            "chips": 0,
        }
        for number in SEATS
    ]
    return {
        "table_id": "t",
        "hand_number": 1,
        "hands": 8,
        "dealer": 0,
        "wall": 40,
        "wall_total": 0,
        "dice": [],
        "turned": [],
        "treasure": 0,
        "turn": None,
        "last_discard": None,
        "starting_chips": 0,
        "seats": seats,
        "vote": None,
        "ready_check": False,
        "phase": "playing",
        "number": 1,
        "ended": None,
    }


def along(way: tuple[int, int], tile: dict[str, Any]) -> float:
    """How far a tile lies towards a side."""
    return float(way[0] * tile["at"][0] + way[1] * tile["at"][1])


MELDS = {
    "chi": ([12, 13, 14], 13),
    "pong": ([25, 25, 25], 25),
    "exposed_kong": ([31, 31, 31, 31], 31),
    "added_kong": ([47, 47, 47, 47], 47),
}


@pytest.mark.parametrize("kind", MELDS)
@pytest.mark.parametrize("perspective", [0, 1])
def test_the_claimed_tile_points_to_who_discarded_it(
    page: Page, kind: str, perspective: int
) -> None:
    tiles, claimed = MELDS[kind]
    for seat in SEATS:
        # A discard is a chi for the next player alone.
        for before in (1,) if kind == "chi" else (1, 2, 3):
            from_seat = (seat - before) % 4
            meld = {
                "kind": kind,
                "tiles": tiles,
                "from_seat": from_seat,
                "claimed_tile": claimed,
                "treasure": 0,
            }
            given = {"state": table(seat, meld), "perspective": perspective, "narrow": before == 3}
            drawn = page.evaluate(DRAWN, given)
            assert sorted(one["index"] for one in drawn) == list(range(len(tiles)))
            own = (seat - perspective) % 4
            # Upright tiles are higher than wide where the seat is near or far.
            turned = [one for one in drawn if one["isTurned"]]
            for one in drawn:
                assert one["isWide"] == ((own % 2 == 1) != one["isTurned"])
            lying = turned[0]
            if kind == "added_kong":
                # The fourth tile lies upon the claimed one, farther from its owner.
                lying, added = sorted(turned, key=lambda one: -along(TOWARDS[own], one))
                assert added["index"] == 3
                assert along(TOWARDS[own], added) < along(TOWARDS[own], lying)
                rest = [one for one in drawn if one is not added]
            else:
                assert len(turned) == 1
                rest = drawn
            assert lying["code"] == claimed
            if before == 2:
                to_right = TOWARDS[(own + 1) % 4]
                order = sorted(rest, key=lambda one: along(to_right, one))
                assert lying not in (order[0], order[-1])
            else:
                towards = TOWARDS[(from_seat - perspective) % 4]
                assert lying is max(rest, key=lambda one: along(towards, one))


def test_of_a_concealed_kong_the_outer_tiles_lie_face_down(page: Page) -> None:
    for seat in SEATS:
        meld = {
            "kind": "concealed_kong",
            "tiles": [41] * 4,
            "from_seat": None,
            "claimed_tile": 0,
            "treasure": 0,
        }
        given = {"state": table(seat, meld), "perspective": 0, "narrow": False}
        drawn = page.evaluate(DRAWN, given)
        to_right = TOWARDS[(seat + 1) % 4]
        order = sorted(drawn, key=lambda one: along(to_right, one))
        assert [one["isCovered"] for one in order] == [True, False, False, True]
        assert not any(one["isTurned"] for one in order)
