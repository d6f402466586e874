// How a hand ended, in words: who won with what, what it counts and why, and who pays whom how much.
//
//   resultWords(state, ruleSet, money)   as a template
//   resultLines(state, ruleSet, money)   as lines of text
//
// `state` is a TableState whose `ended` is set (protobuf JSON: whole numbers of 64 bits are text);
// `ruleSet` describes what is played (fan_items with their meaning), or is null; `money` is what
// money.js' `currencies` makes of the wallet's.

import { add, has, language, number, t } from "./i18n.js";
import { html, nothing } from "./lit.js";
import { meaningOf } from "./meanings.js";
import { reasonName, signed, tone } from "./money.js";
import { nameOf } from "./table.js";
import { formatTiles, tileName, tileRow } from "./tiles.js";
import words from "./result.i18n.js";

add(words);

const SEATS = [0, 1, 2, 3];
const TILE_HEIGHT = 44;

const payer = (state, seat) => (seat === null ? t("result.house") : nameOf(state, seat));
const listed = (texts) => texts.join(t("result.comma"));

// `{zh: "荒庄", en: "drawn hand"}` in the page's language.
const named = (item) => (language() === "zh" ? item.name_zh : item.name_en) || item.id;

// How a hand ended, in a sentence without its full stop; `name(seat)` is who sits there.
export function ending(hand, name) {
  if (hand.win) return won(hand.win, name);
  if (hand.draw) return t("result.draw");
  if (hand.eight_flowers) return t("result.eight_flowers", { name: name(hand.eight_flowers.seat ?? 0) });
  if (hand.escape) return t("result.escape", { name: name(hand.escape.seat ?? 0) });
  const { reason } = hand.dissolved ?? {};
  if (!reason) return t("result.dissolved");
  // Of the table's own accord, or in an operator's words.
  const known = `result.dissolved.${reason}`;
  return t("result.dissolved.why", { reason: has(known) ? t(known) : reason });
}

const endingOf = (state) => ending(state.ended.hand, (seat) => nameOf(state, seat));

function won(win, name) {
  const params = {
    winners: win.winners.map(name).join(t("result.and")),
    tile: tileName(win.tile, language()),
    from: win.from_seat === undefined ? "" : name(win.from_seat),
  };
  const how =
    win.by !== "self_draw"
      ? win.by
      : win.on_deal
        ? "on_deal"
        : win.after_flower
          ? "after_flower"
          : win.after_kong
            ? "after_kong"
            : "self_draw";
  return t(`result.win.${how}`, params);
}

// What a winner's hand counts: {seat, name, tile, sets, shape, items, worth, notes, losers}.
function winners(state, ruleSet) {
  const { hand, score } = state.ended;
  return score.winners.map((winner) => {
    const held = hand.seats[winner.seat];
    const reading = winner.reading ?? { shape: "", sets: [] };
    const sets = reading.sets.length
      ? reading.sets.map((set) => set.tiles)
      : [...held.melds.map((meld) => meld.tiles), held.concealed];
    const notes = [];
    if (winner.flower_points) notes.push(t("result.flowers", { points: winner.flower_points }));
    if (winner.multiplier > 1) notes.push(t("result.times", { times: winner.multiplier }));
    return {
      seat: winner.seat,
      name: nameOf(state, winner.seat),
      tile: hand.win?.tile ?? 0,
      laid: held.melds.length,
      sets,
      flowers: held.flowers,
      shape: reading.shape,
      items: winner.items.map((item) => counted(item, ruleSet)),
      worth: Number(winner.flat)
        ? t("result.flat", { units: number(Number(winner.flat)) })
        : t("result.fan", { fan: winner.fan }),
      notes,
      losers: score.losers
        .filter((loser) => loser.winner === winner.seat && (Number(loser.amount) || loser.items.length))
        .map((loser) => loses(state, winner, loser, ruleSet)),
    };
  });
}

function counted(item, ruleSet) {
  const spec = ruleSet?.fan_items.find((one) => one.id === item.id);
  const fan = item.fan ? t("result.fan", { fan: item.fan }) : t("result.fixed");
  const other = language() === "zh" ? item.name_en : item.name_zh;
  const times = item.count > 1 ? ` ×${item.count}` : "";
  const meaning = spec ? meaningOf(ruleSet.id, spec, language()) : { text: "", lang: "en" };
  return { id: item.id, name: named(item) + times, other, fan, fans: item.fan, meaning };
}

function loses(state, winner, loser, ruleSet) {
  const items = loser.items.map((item) => counted(item, ruleSet));
  const how = [];
  if (!Number(winner.flat)) how.push(t("result.fan.all", { fan: loser.fan }));
  if (loser.multiplier > 1) how.push(t("result.times.own", { times: loser.multiplier }));
  if (loser.capped) how.push(t("result.capped"));
  const text = t("result.loser", {
    name: nameOf(state, loser.seat),
    units: t("result.units", { units: number(Number(loser.amount)) }),
    how: listed(how),
  });
  return { seat: loser.seat, capped: loser.capped, text, items };
}

// What was paid, each payment with a sentence: {from, to, currency, due, paid, reason, text}.
function payments(state, ruleSet, money) {
  const settled = state.settled?.payments;
  if (!settled) {
    return state.ended.score.transfers.map((transfer) => {
      const one = ends(transfer);
      const units = Number(transfer.amount);
      const params = { from: payer(state, one.from), to: payer(state, one.to) };
      const amount = t("result.units", { units: number(units) });
      const text = t("result.pays", { ...params, amount, why: reasonName(transfer.reason) });
      return { ...one, currency: "", book: "", due: units, paid: units, reason: transfer.reason, text };
    });
  }
  const lost = new Map();
  for (const payment of settled) {
    const { from, to } = ends(payment);
    const paid = Number(payment.paid);
    for (const [seat, sign] of payment.reason === "fee" ? [] : [[from, 1], [to, -1]]) {
      const key = `${seat}/${payment.currency}/${payment.book}`;
      lost.set(key, (lost.get(key) ?? 0) + sign * paid);
    }
  }
  return settled.map((payment) => {
    const one = { ...ends(payment), due: Number(payment.due), paid: Number(payment.paid) };
    const { currency, book, reason } = payment;
    const stake = state.stakes.find((each) => each.currency === currency && each.book === book);
    const isOfUnits = stake && reason !== "fee" && Number(stake.per_unit);
    const sum = (value) => money.sum(value, payment, ruleSet);
    const params = { from: payer(state, one.from), to: payer(state, one.to), amount: sum(one.paid) };
    const why = isOfUnits
      ? t("result.why.units", {
          why: reasonName(reason),
          units: t("result.units", { units: number(one.due / Number(stake.per_unit)) }),
          per_unit: money.amount(stake.per_unit, payment),
          due: sum(one.due),
        })
      : reasonName(reason);
    let text = t("result.pays", { ...params, why });
    if (one.paid < one.due) {
      const isCapped = Number(stake?.loss_cap) && lost.get(`${one.from}/${currency}/${book}`) >= Number(stake.loss_cap);
      const because = isCapped
        ? t("result.short.cap", { cap: sum(stake.loss_cap) })
        : t(state.hold_only ? "result.short.hold" : "result.short.balance");
      text += t("result.short", { short: sum(one.due - one.paid), because });
    }
    return { ...one, currency, book, reason, text };
  });
}

const ends = (payment) => ({ from: payment.from_seat ?? null, to: payment.to_seat ?? null });

// What each seat has won or lost by payments, and the house: [{currency, book, net: [4], house}].
function sums(paid) {
  const found = new Map();
  for (const payment of paid) {
    const key = `${payment.currency}/${payment.book}`;
    const sum = found.get(key) ?? { currency: payment.currency, book: payment.book, net: [0, 0, 0, 0], house: 0 };
    found.set(key, sum);
    if (payment.from === null) sum.house -= payment.paid;
    else sum.net[payment.from] -= payment.paid;
    if (payment.to === null) sum.house += payment.paid;
    else sum.net[payment.to] += payment.paid;
  }
  return [...found.values()];
}

const unitOf = (sum, ruleSet, money) => (sum.currency ? money.unit(sum, ruleSet) : t("result.of_units"));

export function resultWords(state, ruleSet, money) {
  if (!state.ended) return nothing;
  const paid = payments(state, ruleSet, money);
  return html`<section class="result" data-ended=${state.ended.hand_number}>
    <h2 class="result-head">${endingOf(state)}</h2>
    ${winners(state, ruleSet).map((winner) => winnerWords(winner))}
    <h3>${t("result.payments")}</h3>
    ${
      paid.length
        ? html`<ol class="result-payments">${paid.map(
            (one) => html`<li data-from=${one.from ?? "house"} data-to=${one.to ?? "house"} data-due=${one.due}
              data-paid=${one.paid} data-currency=${one.currency} data-book=${one.book} data-reason=${one.reason}
              class=${one.paid < one.due ? "short" : ""}>${one.text}</li>`,
          )}</ol>`
        : html`<p class="muted">${t("result.nobody_pays")}</p>`
    }
    ${state.settled || !state.stakes.length || !paid.length ? nothing : html`<p class="muted">${t("result.unpaid")}</p>`}
    ${paid.length ? sumTable(state, sums(paid), ruleSet, money) : nothing}
  </section>`;
}

function winnerWords(winner) {
  const items = (list) =>
    list.map(
      (item) => html`<tr data-item=${item.id} data-fan=${item.fans}>
        <th scope="row">${item.name} <span class="muted" lang=${language() === "zh" ? "en" : "zh"}>${item.other}</span></th>
        <td class="result-fan">${item.fan}</td>
        <td class="muted" lang=${item.meaning.lang}>${item.meaning.text}</td>
      </tr>`,
    );
  return html`<section class="result-winner" data-winner=${winner.seat}>
    <h3>${t("result.winner", { name: winner.name, worth: winner.worth })}</h3>
    <div class="result-sets" role="group" aria-label=${t("result.reading")}>
      ${winner.sets.map((tiles, at) => {
        const glow = winner.tile && at >= winner.laid ? winner.sets.findIndex((set, n) => n >= winner.laid && set.includes(winner.tile)) : -1;
        return tileRow(tiles, {
          height: TILE_HEIGHT,
          lang: language(),
          glow: glow === at ? [tiles.indexOf(winner.tile)] : [],
          zone: "reading",
          seat: winner.seat,
        });
      })}
      ${winner.flowers.length ? tileRow(winner.flowers, { height: TILE_HEIGHT, lang: language(), zone: "flower" }) : nothing}
    </div>
    <p class="muted">${listed([
      ...(has(`result.shape.${winner.shape}`) ? [t(`result.shape.${winner.shape}`)] : []),
      ...(winner.tile ? [t("result.won_on", { tile: tileName(winner.tile, language()) })] : []),
      ...winner.notes,
    ])}</p>
    ${
      winner.items.length
        ? html`<table class="table result-items">
            <thead><tr><th scope="col">${t("result.item")}</th><th scope="col">${t("result.worth")}</th><th scope="col">${t("result.meaning")}</th></tr></thead>
            <tbody>${items(winner.items)}</tbody>
          </table>`
        : html`<p class="muted">${t("result.no_items")}</p>`
    }
    <ul class="result-losers">${winner.losers.map(
      (loser) => html`<li data-loser=${loser.seat} data-capped=${loser.capped}>${loser.text}${
        loser.items.length
          ? html`<table class="table result-items"><caption class="muted">${t("result.own_items")}</caption><tbody>${items(loser.items)}</tbody></table>`
          : nothing
      }</li>`,
    )}</ul>
  </section>`;
}

function sumTable(state, found, ruleSet, money) {
  const amount = (value, { currency }) => html`<td class=${`number ${tone(value) || "muted"}`}>${signed(value, money.digits(currency))}</td>`;
  const hasHouse = found.some((sum) => sum.house);
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("result.sums")}><table class="table result-sums">
    <thead><tr><th scope="col">${t("result.sums")}</th>${SEATS.map((seat) => html`<th scope="col" class="number">${nameOf(state, seat)}</th>`)}
      ${hasHouse ? html`<th scope="col" class="number">${t("result.house")}</th>` : nothing}</tr></thead>
    <tbody>${found.map(
      (sum) => html`<tr data-currency=${sum.currency} data-net=${sum.net.join(" ")} data-house=${sum.house}>
        <th scope="row">${unitOf(sum, ruleSet, money)}</th>${sum.net.map((net) => amount(net, sum))}${hasHouse ? amount(sum.house, sum) : nothing}</tr>`,
    )}</tbody>
  </table></div>`;
}

// The same as lines of text, to copy.
export function resultLines(state, ruleSet, money) {
  if (!state.ended) return [];
  const lines = [endingOf(state)];
  for (const winner of winners(state, ruleSet)) {
    const sets = winner.sets.map((tiles) => formatTiles(tiles)).join(" ");
    lines.push(`  ${t("result.winner", winner)}: ${sets}`);
    if (winner.notes.length) lines.push(`    ${listed(winner.notes)}`);
    const told = (item) => `${item.name} (${item.other}) ${item.fan}`;
    lines.push(...winner.items.map((item) => `    ${told(item)}`));
    for (const loser of winner.losers) {
      const own = loser.items.map(told).join("; ");
      lines.push(`    ${loser.text}${own ? ` (${own})` : ""}`);
    }
  }
  const paid = payments(state, ruleSet, money);
  lines.push(...paid.map((payment) => `  ${payment.text}`));
  if (!paid.length) lines.push(`  ${t("result.nobody_pays")}`);
  for (const sum of sums(paid)) {
    const digits = money.digits(sum.currency);
    const parts = SEATS.map((seat) => `${nameOf(state, seat)} ${signed(sum.net[seat], digits)}`);
    if (sum.house) parts.push(`${t("result.house")} ${signed(sum.house, digits)}`);
    lines.push(`  ${unitOf(sum, ruleSet, money)}: ${parts.join(", ")}`);
  }
  return lines;
}
