// A settlement of a hand: who paid whom what, what was not paid, how it was taken back.

import { get } from "../api.js";
import { time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { amount, currencies, reasonName, signed, tone, unit } from "../money.js";
import { settlementPath } from "../routes.js";

export const css = "wallet";

export async function open(root, params, app) {
  const { t } = app;
  const key = params.key;
  app.title(t("settlement.title"));
  const isOperator = app.person.role === "operator";
  let page;
  let closed = false;

  async function read() {
    const told = await get(`/api${settlementPath(key)}`);
    page = { t, ...told, one: told.settlement, money: currencies(told.currencies, told.books), isOperator };
  }

  async function reverse() {
    const { act } = await import("../dialog.js");
    if (!(await act(app, { verb: "reverse_settlement", target: key }))) return;
    await read();
    if (!closed) draw();
  }

  function draw() {
    const { one, hand } = page;
    const isShort = [...one.transfers.map((paid) => [paid.transfer.amount, paid.paid]), ...one.fees.map((paid) => [paid.fee.amount, paid.paid])].some(([due, paid]) => due !== paid);
    render(
      html`<div class="wallet">
        <header class="toolbar">
          <h1>${hand ? t("settlement.of_hand", { hand: hand.hand }) : t("settlement.title")}</h1>
          ${one.reversal ? html`<span class="badge bad">${t("settlement.reversed")}</span>` : nothing}
          ${isShort ? html`<span class="badge warn">${t("settlement.short")}</span>` : nothing}
          ${one.hold_only ? html`<span class="badge">${t("settlement.hold_only")}</span>` : nothing}
          <span class="end"></span>
          ${hand
            ? html`<a class="button" href=${`/replay/${encodeURIComponent(hand.table_id)}/${hand.hand}`}>${t("settlement.replay")}</a>
              <a class="button" href=${`/tables/${encodeURIComponent(hand.table_id)}`}>${t("settlement.table")}</a>`
            : nothing}
          ${isOperator && !one.reversal ? html`<button class="button danger" data-do="reverse" @click=${reverse}>${t("settlement.reverse")}</button>` : nothing}
        </header>
        <p class="muted"><span class="mono">${one.key}</span> · ${time(one.time, { date: true })}${Object.entries(one.labels).map(
          ([label, value]) => html` · <span class="badge">${label}: ${value}</span>`,
        )}</p>
        ${one.reversal ? reversal(page) : nothing}
        ${parties(page)} ${transfers(page)} ${fees(page)} ${caps(page)} ${holds(page)}
      </div>`,
      root,
    );
  }

  await read();
  draw();
  return function close() {
    closed = true;
    render(nothing, root);
  };
}

const digits = ({ money }, one) => money.digits(one.currency);

function party({ t, one }, index) {
  if (index === null) return html`<span class="muted">${t("settlement.house")}</span>`;
  const id = one.parties[index].player_id;
  return html`<a href=${`/wallet/${encodeURIComponent(id)}`}>${id}</a>`;
}

/** What each party got and paid together, by currency and book: `[{currency, book, party, net}]`. */
function nets(one) {
  const found = new Map();
  const add = (kind, index, value) => {
    if (index === null) return;
    const at = `${kind.currency}\n${kind.book}\n${index}`;
    found.set(at, (found.get(at) ?? 0n) + value);
  };
  for (const { transfer, paid } of one.transfers) {
    add(transfer, transfer.from_party, -BigInt(paid));
    add(transfer, transfer.to_party, BigInt(paid));
  }
  for (const { fee, paid } of one.fees) add(fee, fee.party, -BigInt(paid));
  return [...found].map(([at, net]) => {
    const [currency, book, index] = at.split("\n");
    return { currency, book, party: Number(index), net };
  });
}

function parties(page) {
  const { t, one, isOperator } = page;
  const rows = nets(one);
  const units = [...new Map(rows.map((row) => [`${row.currency}\n${row.book}`, row])).values()];
  const rest = (index, of) => one.balances.find((left) => left.party === index && left.currency === of.currency && left.book === of.book);
  return html`<section class="panel"><h2>${t("settlement.parties")}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("settlement.parties")}><table class="table">
      <thead><tr><th scope="col">${t("settlement.player")}</th>${units.map(
        (of) => html`<th scope="col" class="number">${unit(page, of)}</th>
          ${isOperator ? html`<th scope="col" class="number">${t("settlement.available_after")}</th><th scope="col" class="number">${t("settlement.held_after")}</th>` : nothing}`,
      )}</tr></thead>
      <tbody>${one.parties.map(
        (_, index) => html`<tr data-party=${index}><th scope="row">${party(page, index)}</th>${units.map((of) => {
          const net = rows.find((row) => row.party === index && row.currency === of.currency && row.book === of.book)?.net ?? 0n;
          const left = rest(index, of);
          return html`<td class=${`number ${tone(net)}`} data-net=${net} data-currency=${of.currency}>${signed(net, digits(page, of))}</td>
            ${isOperator ? html`<td class="number">${left ? amount(left.available, digits(page, of)) : "–"}</td><td class="number">${left ? amount(left.held, digits(page, of)) : "–"}</td>` : nothing}`;
        })}</tr>`,
      )}</tbody></table></div></section>`;
}

function paidRow(page, kind, from, to, reason, due, paid) {
  const { t } = page;
  const short = BigInt(due) - BigInt(paid);
  return html`<tr data-transfer data-from=${from ?? "house"} data-to=${to ?? "house"} data-amount=${due} data-paid=${paid} data-reason=${reason} data-currency=${kind.currency}>
    <td>${party(page, from)}</td><td>${party(page, to)}</td><td>${reasonName(reason)}</td>
    <td>${unit(page, kind)}</td><td class="number">${amount(due, digits(page, kind))}</td>
    <td class="number">${amount(paid, digits(page, kind))}</td>
    <td class="number">${short ? html`<strong class="bad">${t("settlement.lacks", { amount: amount(short, digits(page, kind)) })}</strong>` : ""}</td></tr>`;
}

function paidTable({ t }, title, rows) {
  return html`<section class="panel"><h2>${title}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${title}><table class="table">
      <thead><tr><th scope="col">${t("settlement.from")}</th><th scope="col">${t("settlement.to")}</th><th scope="col">${t("settlement.for")}</th><th scope="col">${t("settlement.currency")}</th>
        <th scope="col" class="number">${t("settlement.due")}</th><th scope="col" class="number">${t("settlement.paid")}</th><th scope="col" class="number"><span class="unseen">${t("settlement.shortfall")}</span></th></tr></thead>
      <tbody>${rows}</tbody></table></div></section>`;
}

function transfers(page) {
  const { t, one } = page;
  if (!one.transfers.length) return html`<section class="panel"><h2>${t("settlement.transfers")}</h2><p class="muted">${t("settlement.no_transfers")}</p></section>`;
  return paidTable(page, t("settlement.transfers"), one.transfers.map(
    ({ transfer, paid }) => paidRow(page, transfer, transfer.from_party, transfer.to_party, transfer.reason, transfer.amount, paid),
  ));
}

function fees(page) {
  const { t, one } = page;
  if (!one.fees.length) return nothing;
  return paidTable(page, t("settlement.fees"), one.fees.map(({ fee, paid }) => paidRow(page, fee, fee.party, null, "fee", fee.amount, paid)));
}

function caps(page) {
  const { t, one } = page;
  if (!one.caps.length) return nothing;
  return html`<p class="muted">${t("settlement.caps")} ${one.caps.map((cap) => html`${amount(cap.most, digits(page, cap))} ${unit(page, cap)} `)}</p>`;
}

function holds(page) {
  const { t, one, isOperator } = page;
  if (!isOperator || !page.holds.length) return nothing;
  return html`<section class="panel"><h2>${t("settlement.holds")}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("settlement.holds")}><table class="table">
      <thead><tr><th scope="col">${t("settlement.player")}</th><th scope="col">${t("settlement.currency")}</th><th scope="col" class="number">${t("settlement.set_aside")}</th><th scope="col" class="number">${t("settlement.left_now")}</th><th scope="col">${t("settlement.hold_state")}</th><th scope="col">${t("settlement.hold")}</th></tr></thead>
      <tbody>${page.holds.map(
        (hold) => html`<tr data-hold=${hold.hold_id}><th scope="row">${party(page, one.parties.findIndex((each) => each.hold_ids.includes(hold.hold_id)))}</th><td>${unit(page, hold)}</td>
          <td class="number">${amount(hold.amount, digits(page, hold))}</td><td class="number">${amount(hold.remaining, digits(page, hold))}</td>
          <td>${t(`settlement.hold.${hold.state}`)}</td><td class="mono muted">${hold.hold_id}</td></tr>`,
      )}</tbody></table></div></section>`;
}

function reversal(page) {
  const { t, one, isOperator } = page;
  const { reversal: back } = one;
  return html`<section class="panel wallet-reversal" data-reversed><h2>${t("settlement.reversed")} · ${time(back.time, { date: true })}</h2>
    ${isOperator
      ? html`<p>${back.reason}${back.case_id ? html` <span class="badge">${back.case_id}</span>` : nothing}</p>
        <div class="scroll" tabindex="0" role="region" aria-label=${t("settlement.reversed")}><table class="table">
          <thead><tr><th scope="col">${t("settlement.player")}</th><th scope="col">${t("settlement.currency")}</th><th scope="col" class="number">${t("settlement.back")}</th><th scope="col" class="number">${t("settlement.owed")}</th></tr></thead>
          <tbody>${back.parties.map(
            (each) => html`<tr><th scope="row">${party(page, each.party)}</th><td>${unit(page, each)}</td><td class=${`number ${tone(each.amount)}`}>${signed(each.amount, digits(page, each))}</td>
              <td class=${`number ${each.owed ? "bad" : ""}`}>${each.owed ? amount(each.owed, digits(page, each)) : "–"}</td></tr>`,
          )}</tbody></table></div>`
      : html`<p class="muted">${t("settlement.reversed_why")}</p>`}</section>`;
}
