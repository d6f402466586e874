// Wallets: find a player; what he has, what became of it, where he is; leaderboards; the ledger's state.

import { get } from "../api.js";
import { time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { amount, currencies, reasonName, signed, tone, unit } from "../money.js";
import { said } from "../problems.js";
import { settlementPath } from "../routes.js";
import { home } from "./wallet.home.js";

export const css = "wallet";

const REASONS = [
  "win", "kong", "piao", "follow_dealer", "draw", "escape", "false_win", "fee", "deposit", "withdraw", "hold", "top_up",
  "release", "expire", "reverse", "collect", "write_off", "fund", "give_back",
];

export async function open(root, params, app) {
  const { t } = app;
  if (!params.player) return home(root, app);
  const id = params.player;
  app.title(t("wallet.of", { player: id }));
  const query = new URLSearchParams(location.search);
  const page = { app, t, id, told: null, at: query.get("at") ?? "", entries: [], next: "", archived: null, asking: false, problem: null };
  page.filter = Object.fromEntries(["currency", "reason", "from", "until"].map((key) => [key, query.get(key) ?? ""]));
  const isOperator = app.person.role === "operator";
  let asked = 0; // the newest question for entries, and for the wallet; older answers are not shown
  let looked = 0;
  let closed = false;

  const wallet = () => `/api/wallet?${new URLSearchParams({ player: id, ...(page.at ? { at: moment(page.at) } : {}) })}`;

  async function read() {
    const number = ++looked;
    const told = await get(wallet());
    if (number !== looked) return;
    page.told = told;
    page.money = currencies(page.told.currencies, page.told.books);
  }

  /** The first page of the statement, or one more of it. */
  async function more(first) {
    const number = ++asked;
    const { currency, reason, from, until } = page.filter;
    const wanted = new URLSearchParams({ player: id });
    if (currency) wanted.set("currency", currency);
    if (reason) wanted.set("reason", reason);
    if (from) wanted.set("from", moment(from));
    if (until) wanted.set("until", moment(until));
    if (!first) wanted.set("page", page.next);
    page.asking = true;
    page.problem = null;
    draw();
    try {
      const found = await get(`/api/wallet/entries?${wanted}`);
      if (closed || number !== asked) return;
      page.entries = first ? found.entries : [...page.entries, ...found.entries];
      page.next = found.next_page_token;
      page.archived = found.archived_before;
    } catch (error) {
      if (closed || number !== asked) return;
      page.problem = error;
    }
    page.asking = false;
    draw();
  }

  function sift(key, value) {
    page.filter = { ...page.filter, [key]: value };
    keep();
    more(true);
  }

  async function setAt(value) {
    page.at = value;
    keep();
    let problem = null;
    try {
      await read();
    } catch (error) {
      problem = error;
    }
    if (closed || page.at !== value) return;
    page.problem = problem;
    draw();
  }

  /** The address says what is shown. */
  function keep() {
    const shown = new URLSearchParams(Object.entries({ at: page.at, ...page.filter }).filter(([, value]) => value));
    history.replaceState(history.state, "", `${location.pathname}${shown.size ? `?${shown}` : ""}`);
  }

  async function act(verb, target) {
    const dialog = await import("../dialog.js");
    if (!(await dialog.act(app, { verb, target })) || closed) return;
    await read();
    await more(true);
  }

  Object.assign(page, { more, sift, setAt, act });

  function draw() {
    const { told } = page;
    render(
      html`<div class="wallet">
        <header class="toolbar">
          <h1>${id}</h1>
          ${told.money?.state?.is_bot ? html`<span class="badge">${t("wallet.bot")}</span>` : nothing}
          ${told.money?.state?.frozen ? html`<span class="badge bad">${t("wallet.frozen")}</span>` : nothing}
          <span class="end"></span>
          <a class="button" href=${`/hands?player=${encodeURIComponent(id)}`}>${t("wallet.hands")}</a>
          ${isOperator
            ? told.money.state.frozen
              ? html`<button class="button" data-do="unfreeze" @click=${() => act("unfreeze_player", id)}>${t("wallet.unfreeze")}</button>`
              : html`<button class="button danger" data-do="freeze" @click=${() => act("freeze_player", id)}>${t("wallet.freeze")}</button>`
            : nothing}
        </header>
        ${page.problem ? html`<p class="error" role="alert">${said(page.problem)}</p>` : nothing}
        <div class="wallet-top">
          ${where(page)} ${titles(page)} ${isOperator ? freeze(page) : nothing}
        </div>
        ${isOperator ? html`${balances(page)} ${holds(page)} ${statement(page)}` : html`<p class="empty" data-closed>${t("wallet.operators_only")}</p>`}
      </div>`,
      root,
    );
  }

  await read();
  draw();
  if (isOperator) await more(true);
  return function close() {
    closed = true;
    render(nothing, root);
  };
}

/** The moment of a field of a local date and time, in milliseconds since 1970. */
const moment = (text) => String(new Date(text).getTime());

function where({ t, told }) {
  const { problem, table_id, seat, in_room, ticket } = told.where;
  let says;
  if (problem) says = html`<span class="warn">${t("wallet.where.unknown")}</span>`;
  else if (table_id) {
    says = html`<a href=${`/tables/${encodeURIComponent(table_id)}`} data-table=${table_id}>${t("wallet.where.table")}</a>
      <span class="muted">${t("wallet.where.seat", { seat: seat + 1 })}</span><div class="mono muted wallet-id">${table_id}</div>`;
  } else if (in_room) says = t("wallet.where.room");
  else if (ticket && (ticket.state === "waiting" || ticket.state === "matched")) {
    says = html`${t("wallet.where.queue", { pool: ticket.pool_id })}
      ${ticket.queued ? html`<div class="muted">${t("wallet.where.since", { time: time(ticket.queued) })}</div>` : nothing}`;
  } else says = html`<span class="muted">${t("wallet.where.nowhere")}</span>`;
  return html`<section class="panel" data-where><h2>${t("wallet.where")}</h2>${says}</section>`;
}

function titles({ t, told, app, money }) {
  const name = (one) => (app.lang === "zh" ? one.name_zh : one.name_en);
  return html`<section class="panel"><h2>${t("wallet.titles")}</h2>
    ${told.titles.length
      ? html`<ul class="wallet-titles">${told.titles.map(
          (one) => html`<li data-title=${one.name_zh} data-book=${one.book}><strong>${name(one)}</strong> <span class="muted">${money.book(one.book)}</span></li>`,
        )}</ul>`
      : html`<p class="muted">${t("wallet.no_titles")}</p>`}</section>`;
}

function freeze({ t, told }) {
  const { state } = told.money;
  return html`<section class="panel" data-frozen=${state.frozen}><h2>${t("wallet.state")}</h2>
    <p>${state.frozen ? html`<strong class="bad">${t("wallet.is_frozen")}</strong>` : t("wallet.is_free")}</p>
    ${state.time
      ? html`<p class="muted">${time(state.time, { date: true })}: ${state.reason}${state.case_id ? ` (${state.case_id})` : ""}</p>`
      : nothing}</section>`;
}

function balances(page) {
  const { t, told, money } = page;
  const cell = (value, one, coloured = false) =>
    html`<td class=${`number ${coloured || BigInt(value) < 0n ? tone(value) : ""}`}>${amount(value, money.digits(one.currency))}</td>`;
  const hasDebts = told.money.balances.some((one) => one.owed);
  return html`<section class="panel">
    <header class="toolbar"><h2>${t("wallet.balances")}</h2><span class="end"></span>
      <label class="wallet-at">${t("wallet.at")} <input type="datetime-local" step="1" .value=${page.at} @change=${(event) => page.setAt(event.target.value)} /></label>
      ${page.at ? html`<button class="button" @click=${() => page.setAt("")}>${t("wallet.now")}</button>` : nothing}
    </header>
    ${told.money.balances.length
      ? html`<div class="scroll" tabindex="0" role="region" aria-label=${t("wallet.balances")}><table class="table">
        <thead><tr><th scope="col">${t("wallet.currency")}</th><th scope="col" class="number">${t("wallet.available")}</th><th scope="col" class="number">${t("wallet.held")}</th>
          <th scope="col" class="number">${t("wallet.total")}</th><th scope="col" class="number">${t("wallet.owed")}</th>${hasDebts ? html`<th scope="col"><span class="unseen">${t("wallet.acts")}</span></th>` : nothing}</tr></thead>
        <tbody>${told.money.balances.map(
          (one) => html`<tr data-balance=${one.currency} data-book=${one.book} data-available=${one.available} data-held=${one.held} data-owed=${one.owed}>
            <th scope="row">${unit(page, one)}</th>${cell(one.available, one)}${cell(one.held, one)}
            ${cell(String(BigInt(one.available) + BigInt(one.held)), one)}
            <td class=${`number ${one.owed ? "bad" : ""}`}>${one.owed ? amount(one.owed, money.digits(one.currency)) : "–"}</td>
            ${hasDebts ? html`<td>${one.owed && !page.at ? debts(page, one) : nothing}</td>` : nothing}</tr>`,
        )}</tbody></table></div>`
      : html`<p class="muted">${t("wallet.no_balances")}</p>`}</section>`;
}

function debts({ t, id, act }, one) {
  const target = { player_id: id, currency: one.currency, book: one.book, amount: one.owed };
  return html`<button class="button" @click=${() => act("collect_receivable", target)}>${t("wallet.collect")}</button>
    <button class="button danger" @click=${() => act("write_off_receivable", target)}>${t("wallet.write_off")}</button>`;
}

function holds(page) {
  const { t, told, money } = page;
  if (!told.money.holds.length) return nothing;
  return html`<section class="panel"><h2>${t("wallet.holds")}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("wallet.holds")}><table class="table">
      <thead><tr><th scope="col">${t("wallet.currency")}</th><th scope="col" class="number">${t("wallet.hold.amount")}</th><th scope="col" class="number">${t("wallet.hold.remaining")}</th>
        <th scope="col">${t("wallet.hold.table")}</th><th scope="col">${t("wallet.hold.expires")}</th><th scope="col">${t("wallet.hold.id")}</th></tr></thead>
      <tbody>${told.money.holds.map(
        (one) => html`<tr data-hold=${one.hold_id} data-amount=${one.amount} data-remaining=${one.remaining}>
          <th scope="row">${unit(page, one)}</th><td class="number">${amount(one.amount, money.digits(one.currency))}</td><td class="number">${amount(one.remaining, money.digits(one.currency))}</td>
          <td>${one.table_id ? html`<a class="mono" href=${`/tables/${encodeURIComponent(one.table_id)}`}>${one.table_id}</a>` : "–"}</td>
          <td>${one.expires ? time(one.expires, { date: true }) : "–"}</td><td class="mono">${one.hold_id}</td></tr>`,
      )}</tbody></table></div></section>`;
}

function statement(page) {
  const { t, told, filter, sift, money } = page;
  return html`<section class="panel">
    <header class="toolbar"><h2>${t("wallet.statement")}</h2><span class="end"></span>
      <label>${t("wallet.currency")} <select data-key="currency" @change=${(event) => sift("currency", event.target.value)}>
        <option value="">${t("wallet.all")}</option>
        ${told.currencies.map((one) => html`<option value=${one.currency} .selected=${one.currency === filter.currency}>${money.name(one.currency)}</option>`)}</select></label>
      <label>${t("wallet.reason")} <select data-key="reason" @change=${(event) => sift("reason", event.target.value)}>
        <option value="">${t("wallet.all")}</option>
        ${REASONS.map((one) => html`<option value=${one} .selected=${one === filter.reason}>${reasonName(one)}</option>`)}</select></label>
      <label>${t("wallet.from")} <input type="datetime-local" step="1" data-key="from" .value=${filter.from} @change=${(event) => sift("from", event.target.value)} /></label>
      <label>${t("wallet.until")} <input type="datetime-local" step="1" data-key="until" .value=${filter.until} @change=${(event) => sift("until", event.target.value)} /></label>
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("wallet.statement")} aria-busy=${page.asking}><table class="table wallet-statement">
      <thead><tr><th scope="col">${t("wallet.time")}</th><th scope="col">${t("wallet.reason")}</th><th scope="col" class="number">${t("wallet.amount")}</th>
        <th scope="col" class="number">${t("wallet.after")}</th><th scope="col">${t("wallet.currency")}</th><th scope="col">${t("wallet.for")}</th></tr></thead>
      <tbody>${page.entries.map((one) => entry(page, one))}</tbody></table></div>
    ${page.entries.length || page.asking ? nothing : html`<p class="muted">${t("wallet.no_entries")}</p>`}
    ${page.next ? html`<p><button class="button" data-do="more" ?disabled=${page.asking} @click=${() => page.more(false)}>${t("wallet.more")}</button></p>` : nothing}
    ${page.archived ? html`<p class="muted">${t("wallet.archived", { time: time(page.archived, { date: true }) })}</p>` : nothing}
  </section>`;
}

function entry(page, one) {
  const { t, money } = page;
  const digits = money.digits(one.currency);
  const labels = Object.entries(one.labels).map(([key, value]) => `${key}: ${value}`).join(", ");
  return html`<tr data-entry=${one.reference} data-reason=${one.reason} data-amount=${one.amount} data-after=${one.balance_after} data-currency=${one.currency} data-version=${one.version}>
    <td class="wallet-time">${time(one.time, { date: true })}</td>
    <td class="wallet-reason">${reasonName(one.reason)}</td>
    <td class=${`number wallet-amount ${tone(one.amount)}`}>${signed(one.amount, digits)}</td>
    <td class=${`number wallet-after ${BigInt(one.balance_after) < 0n ? "bad" : ""}`}>${amount(one.balance_after, digits)}</td>
    <td class="wallet-kind">${unit(page, one)}</td>
    <td class="wallet-for">${one.hand
      ? html`<a href=${settlementPath(one.reference)} data-settlement=${one.reference}>${t("wallet.hand", { hand: one.hand.hand })}</a> <span class="mono muted wallet-id">${one.hand.table_id}</span>`
      : html`<span class="mono muted wallet-id">${one.reference}</span>`}
      ${one.memo ? html`<div>${one.memo}</div>` : nothing}${labels ? html`<div class="muted">${labels}</div>` : nothing}</td></tr>`;
}
