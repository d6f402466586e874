// Acts of operators in words: what a preview, an outcome or a line of the log says (verbs.py).

import words from "./acts.i18n.js";
import { add, format, has, t, time } from "./i18n.js";
import { amount, currencies } from "./money.js";
import { heard } from "./problems.js";

add(words);

/** A table as people name it to each other: the end of its id, for the beginning is the hour's. */
export const shortTable = (id) => id.slice(-6);

/** What a line of the log is about, in short. */
export function targetText(target) {
  const { table_id: table, hand_number: hand, settlement, player_id: player, other_id: other, pool_id: pool } = target;
  const parts = [];
  if (settlement) parts.push(`…${settlement.slice(-8)}`);
  else if (table) parts.push(hand ? `…${shortTable(table)}/${hand}` : `…${shortTable(table)}`);
  if (player) parts.push(other ? `${player} – ${other}` : player);
  if (pool) parts.push(pool);
  return parts.join(", ");
}

export const verbName = (verb) => (has(`act.verb.${verb}`) ? t(`act.verb.${verb}`) : verb);

/** A problem in the reader's language, where there are words for it. */
export function problemText(problem) {
  return has(`act.problem.${problem.reason}`) ? t(`act.problem.${problem.reason}`) : heard(problem);
}

/** `said`: {key, params}; `listed`: the currencies that came with it. */
export function sentence(said, listed) {
  if (!has(`act.${said.key}`)) return said.key;
  return t(`act.${said.key}`, filled(said.params, currencies(listed)));
}

function filled(params, known) {
  const shown = { ...params };
  if (shown.table) shown.table = shortTable(shown.table);
  if (Array.isArray(shown.players)) shown.players = list(shown.players);
  if (Array.isArray(shown.money)) shown.money = list(shown.money.map((one) => sum(one, known)));
  if ("ms" in shown) {
    shown.time = time(shown.ms, { date: true });
    shown.case = shown.case ? t("act.case_in", { case: shown.case }) : "";
  }
  return shown;
}

/** An amount: {currency, book, amount}. */
export const sumText = (one, listed) => sum(one, currencies(listed));

function sum({ currency, book, amount: value }, known) {
  const name = book ? `${known.name(currency)} (${book})` : known.name(currency);
  return `${amount(value, known.digits(currency))} ${name}`;
}

function list(items) {
  if (!items.length) return t("act.nobody");
  return format("ListFormat", { type: "conjunction" }).format(items);
}
