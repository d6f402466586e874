// Amounts as people read them, and the words for why money moved.

import { add, format, has, language, t } from "./i18n.js";
import { html, nothing } from "./lit.js";
import words from "./money.i18n.js";

add(words);

const MINUS = "−";

/**
 * A whole number (or its text, beyond what a number holds) with its digits in groups: "−12,345";
 * with `minorDigits` of a currency, "−123.45".
 */
export function amount(value, minorDigits = 0) {
  const whole = BigInt(value);
  const digits = String(whole < 0n ? -whole : whole).padStart(minorDigits + 1, "0");
  const head = digits.slice(0, digits.length - minorDigits);
  const tail = minorDigits ? `.${digits.slice(-minorDigits)}` : "";
  const grouped = format("NumberFormat", { useGrouping: true }).format(BigInt(head));
  return `${whole < 0n ? MINUS : ""}${grouped}${tail}`;
}

/** The same with a sign before what is gained, too: "+320". */
export function signed(value, minorDigits = 0) {
  return `${BigInt(value) > 0n ? "+" : ""}${amount(value, minorDigits)}`;
}

/** The class of an amount: "good" above 0, "bad" below. */
export function tone(value) {
  const whole = BigInt(value);
  return whole > 0n ? "good" : whole < 0n ? "bad" : "";
}

/** What an amount is of, a currency and its book, as it is called: `money` as of currencies(). */
export function unit({ money }, one) {
  return html`<span class="wallet-unit">${money.name(one.currency)}${one.book ? html` <span class="muted">${money.book(one.book)}</span>` : nothing}</span>`;
}

/** Why something was paid or entered, in words; a reason of somebody else's stays as it is. */
export function reasonName(reason) {
  return has(`reason.${reason}`) ? t(`reason.${reason}`) : reason;
}

/**
 * How a wallet's amounts are shown: `name(currency)`, `digits(currency)` after the point, and
 * `book(id)`, which is a rule set's name. `books`: `{name_zh, name_en}` by id. Of something with a
 * `currency` and a `book`: `unit` is both in words, but for the book of `ruleSet`, which is what the
 * page is about; `sum` is a value with it, `amount` the value alone.
 */
export function currencies(listed, books = {}) {
  const known = new Map(listed.map((one) => [one.currency, one]));
  const money = {
    name: (id) => known.get(id)?.names[language()] || id,
    digits: (id) => known.get(id)?.minor_digits ?? 0,
    book: (id) => books[id]?.[`name_${language()}`] || id,
    unit({ currency, book }, ruleSet) {
      return book && book !== ruleSet?.id ? `${money.name(currency)} ${money.book(book)}` : money.name(currency);
    },
    amount: (value, { currency }) => amount(value, money.digits(currency)),
    sum: (value, unit, ruleSet) => `${money.amount(value, unit)} ${money.unit(unit, ruleSet)}`,
  };
  return money;
}
