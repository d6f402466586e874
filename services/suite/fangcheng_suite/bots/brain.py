"""How a live bot chooses: by the players of `fangcheng_rules.players`, as in a simulation.

Nothing here knows the network: `Analyst` is whoever answers what a hand is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import TableView
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.hand import Hand
from fangcheng_rules.players import Player, hands_asked

from .convert import analysis_from, hand_to_wire, prompt_from, situation_from


class Analyst(Protocol):
    """Answers what a hand of 13 or 14 tiles is worth, with its progress."""

    async def __call__(self, hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        """The analysis, with shanten and useful tiles."""


@dataclass(slots=True)
class Brain:
    """One bot: a player, and whom it asks about hands."""

    analyst: Analyst
    player: Player

    async def choose(self, view: TableView, prompt: events_pb2.Prompt) -> state_pb2.Action:
        """The answer to a prompt: always one of its actions."""
        if len(prompt.actions) == 1:
            return prompt.actions[0]
        known: dict[Hand, Analysis] = {}
        situation = situation_from(view, known.__getitem__)
        asked = prompt_from(prompt)
        if self.player.needs_progress:
            for hand in hands_asked(situation, asked):
                if hand not in known:
                    known[hand] = analysis_from(await self.analyst(hand_to_wire(hand)))
        chosen = self.player.choose(situation, asked)
        return prompt.actions[asked.actions.index(chosen)]
