"""Evaluate the same 2,000 hands and print what was found; run as a process of its own."""

from __future__ import annotations

import json
import random
import sys

from fangcheng_rules.kernels import speed
from fangcheng_rules.kernels.bound import bind
from fangcheng_rules.rulesets.baishan_kele import HOT
from tests.rules.random_hands import random_hand


def main() -> None:
    kernels = bind(HOT)
    rng = random.Random(21)
    found: list[object] = []
    for i in range(2_000):
        hand = random_hand(rng, 13 + i % 2)
        tiles = hand.concealed, hand.melds
        shanten = kernels.shanten(*tiles)
        if hand.size == 13:
            found.append([shanten, kernels.waits(*tiles), kernels.progress(*tiles)])
        else:
            readings = kernels.readings(*tiles, hand.concealed[0], claimed=True)
            found.append([shanten, readings, kernels.best(*tiles), kernels.discards(*tiles)])
            if i % 5 == 0:
                found.append(kernels.discard_progress(*tiles))
    json.dump({"compiled": speed.COMPILED, "found": found}, sys.stdout)


if __name__ == "__main__":
    main()
