"""What the two verbs that erase a player decide; see ``masks`` and ``erasing``."""

from __future__ import annotations

from dataclasses import replace

from fangcheng_wallet import masks
from fangcheng_wallet.desk import Desk
from fangcheng_wallet.ledger import Decision, Erase, Erased, Mask


def mask(desk: Desk, command: Mask) -> Decision[int]:
    """Take texts and labels out of operations; those without any are left alone."""
    found = (desk.view.written(number) for number in command.numbers)
    masked = tuple(
        one
        for one in (masks.mask(written, command.erasure) for written in found if written)
        if one is not None
    )
    says = masks.MaskBody(
        command.erasure.player_id, tuple((one.number, one.left) for one in masked)
    )
    return Decision((), len(masked), masked=masked, says=says)


def erase(desk: Desk, command: Erase) -> Decision[Erased]:
    """Forget why a player was frozen, whose operations are masked, and note that he is erased."""
    player = desk.check_wallet(command.player_id, "player_id")
    if not command.keep_texts:
        player = replace(player, reason="")
    return Decision((), Erased(desk.time_us), player=player)
