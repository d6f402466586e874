"""Which services an edge lets through: those that players and studios call from outside."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WITHIN = {
    # Called from within, past the edge.
    "fangcheng.wallet.v1.SettlementService",
    "fangcheng.table.v1.TableOperationsService",
    "fangcheng.matchmaking.v1.MatchmakingOperationsService",
    "fangcheng.matchmaking.v1.PrivacyService",
    "fangcheng.table.v1.PrivacyService",
    "fangcheng.wallet.v1.PrivacyService",
    # Served by a studio, called by us.
    "fangcheng.matchmaking.v1.AdmissionService",
}


def test_every_service_is_let_through_or_kept_within_on_purpose() -> None:
    declared = {
        f"{package}.{service}"
        for path in ROOT.joinpath("protos/fangcheng").rglob("*.proto")
        for package in re.findall(r"^package (\S+);", path.read_text("utf-8"), re.MULTILINE)
        for service in re.findall(r"^service (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    config = ROOT.joinpath("deploy/envoy/envoy.yaml").read_text("utf-8")
    routed = set(re.findall(r"prefix: /(fangcheng[\w.]+)/", config))

    assert routed.isdisjoint(WITHIN)
    assert routed | WITHIN == declared
