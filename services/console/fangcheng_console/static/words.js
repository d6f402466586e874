// An event of a table in one sentence, for a log and for who does not see the picture.
//
//   told(event, state, ruleSet)   a sentence, or "" where there is nothing to tell a person
//   callOf(event)                 what is called aloud with it ({seat, kind, text}), or null
//
// `event` is protobuf JSON as a table's stream has it in its log: whole numbers of 64 bits are text.

import { add, has, language, t } from "./i18n.js";
import { ending } from "./result.js";
import { declaredName, nameOf } from "./table.js";
import { tileName } from "./tiles.js";
import words from "./words.i18n.js";

add(words);

export const kindOf = (event) => Object.keys(event).find((key) => key !== "number" && key !== "time") ?? "";

const tileOf = (code) => tileName(code, language());
const listed = (texts) => texts.join(t("told.comma"));

// A reason of the wire in words (`hands_played`), or as it is.
export function reasonOf(reason) {
  return has(`told.reason.${reason}`) ? t(`told.reason.${reason}`) : reason.replaceAll("_", " ");
}

const TOLD = {
  hand_started: (it, name) => t("told.hand_started", { hand: it.hand_number, dealer: name(it.dealer) }),
  piao_shown: (it, name) =>
    t("told.piao_shown", { piao: listed(it.units.map((units, seat) => `${name(seat)} ${units}`)) }),
  dealt: () => t("told.dealt"),
  drawn: (it, name) => {
    const how = has(`told.drawn.${it.origin}`) ? t(`told.drawn.${it.origin}`) : "";
    const tile = it.tile ? tileOf(it.tile) : t("told.drawn.hidden");
    return t("told.drawn", { name: name(it.seat), tile, how });
  },
  discarded: (it, name, ruleSet) => {
    const params = { name: name(it.seat), tile: tileOf(it.tile) };
    if (!it.declared) return t("told.discarded", params);
    return t("told.discarded.declared", { ...params, declared: declaredName(it.declared, ruleSet) });
  },
  melded: (it, name, ruleSet) => {
    const shown = it.meld.tiles.filter(Boolean);
    const said = [t("told.melded", { name: name(it.seat), meld: meldName(it.meld.kind) })];
    if (shown.length) said.push(t("told.melded.tiles", { tiles: shown.map(tileOf).join(t("told.tiles.between")) }));
    if (it.meld.from_seat !== undefined && it.meld.kind !== "added_kong")
      said.push(t("told.melded.from", { name: name(it.meld.from_seat) }));
    if (it.declared) said.push(t("told.melded.declared", { declared: declaredName(it.declared, ruleSet) }));
    return said.join("");
  },
  flower_laid: (it, name) => t("told.flower_laid", { name: name(it.seat), tile: tileOf(it.tile) }),
  treasure_turned: (it) => (it.tile ? t("told.treasure", { tile: tileOf(it.tile) }) : t("told.treasure.none")),
  kong_robbed: (it, name) => t("told.kong_robbed", { name: name(it.seat), tile: tileOf(it.tile) }),
  false_win_called: (it, name) => t("told.false_win", { name: name(it.seat) }),
  trustee_changed: (it, name) =>
    t(it.trustee ? "told.trustee" : "told.trustee.back", { name: name(it.seat), why: reasonOf(it.why) }),
  connection_changed: (it, name) => t(it.connected ? "told.there" : "told.away", { name: name(it.seat) }),
  leave_announced: (it, name) => t("told.leaves", { name: name(it.seat) }),
  ready_asked: () => t("told.ready_asked"),
  ready_given: (it, name) => t("told.ready_given", { name: name(it.seat) }),
  vote_opened: (it, name) => t("told.vote_opened", { name: name(it.seat) }),
  vote_answered: (it, name) => t(it.agrees ? "told.vote.agrees" : "told.vote.refuses", { name: name(it.seat) }),
  vote_closed: (it) => t("told.vote_closed", { outcome: reasonOf(it.outcome) }),
  seat_vacated: (it) => t("told.seat_vacated", { seat: it.seat + 1, why: reasonOf(it.why) }),
  player_seated: (it, name) => t("told.player_seated", { name: name(it.seat.seat), seat: it.seat.seat + 1 }),
  operator_acted: (it, name) =>
    t("told.operator_acted", {
      what: reasonOf(it.verb),
      about: it.seat === undefined ? "" : t("told.operator_acted.about", { name: name(it.seat) }),
      why: it.reason ?? "",
    }),
  hand_ended: (it, name) => `${ending(it.hand, name)}${t("told.stop")}`,
  hand_settled: (it) => (it.payments.length ? t("told.hand_settled") : ""),
  table_closed: (it) => t("told.table_closed", { why: reasonOf(it.reason) }),
};

export function told(event, state, ruleSet = null) {
  const kind = kindOf(event);
  return TOLD[kind]?.(event[kind], (seat) => nameOf(state, seat), ruleSet) ?? "";
}

export function meldName(kind) {
  return has(`told.meld.${kind}`) ? t(`told.meld.${kind}`) : kind.replaceAll("_", " ");
}

const KONGS = new Set(["exposed_kong", "added_kong", "concealed_kong"]);

export function callOf(event) {
  const kind = kindOf(event);
  const it = event[kind];
  const call = (seat, word) => ({ seat, kind: word, text: t(`told.call.${word}`) });
  if (kind === "melded") {
    const what = KONGS.has(it.meld.kind) ? "kong" : it.meld.kind;
    return has(`told.call.${what}`) ? call(it.seat, what) : null;
  }
  if (kind === "flower_laid") return call(it.seat, "flower");
  if (kind === "false_win_called") return call(it.seat, "false_win");
  if (kind === "hand_ended" && it.hand.win) return call(it.hand.win.winners[0], it.hand.win.by === "self_draw" ? "self_draw" : "win");
  return null;
}
