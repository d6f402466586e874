// The first page of wallets: find a player, see who gained most, and how the ledger stands.

import { get } from "../api.js";
import { number, time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { currencies, signed, tone } from "../money.js";
import { said } from "../problems.js";

export async function home(root, app) {
  const { t } = app;
  app.title(t("wallet.title"));
  const query = new URLSearchParams(location.search);
  const [listed, { rule_sets: ruleSets }] = await Promise.all([get("/api/currencies"), get("/api/rule-sets").catch(() => ({ rule_sets: [] }))]);
  const money = currencies(listed.currencies);
  const books = ruleSets.filter((one) => one.newest);
  const page = {
    currency: query.get("currency") ?? listed.currencies[0]?.currency ?? "",
    book: query.get("book") ?? "",
    period: query.get("period") ?? "",
    board: null,
    standings: [],
    problem: null,
    ledger: null,
  };
  let asked = 0;
  let closed = false;
  if (!query.has("currency")) Object.assign(page, await played(listed.currencies, books));

  const hasBooks = () => listed.currencies.find((one) => one.currency === page.currency)?.books ?? false;

  async function rank(first) {
    const number = ++asked;
    if (hasBooks() && !page.book) page.book = books[0]?.id ?? "";
    if (!hasBooks()) page.book = "";
    const wanted = new URLSearchParams({ currency: page.currency, book: page.book, period: page.period });
    if (!first) wanted.set("page", page.board.next_page_token);
    try {
      const found = await get(`/api/leaderboard?${wanted}`);
      if (closed || number !== asked) return;
      page.standings = first ? found.standings : [...page.standings, ...found.standings];
      page.board = found;
      page.problem = null;
    } catch (error) {
      if (closed || number !== asked) return;
      page.problem = error;
    }
    draw();
  }

  function choose(key, value) {
    page[key] = value;
    const shown = new URLSearchParams(Object.entries({ currency: page.currency, book: page.book, period: page.period }).filter(([, one]) => one));
    history.replaceState(history.state, "", `/wallet?${shown}`);
    rank(true);
  }

  function find(event) {
    event.preventDefault();
    const id = event.target.elements.player.value.trim();
    if (id) app.navigate(`/wallet/${encodeURIComponent(id)}`);
  }

  function draw() {
    render(
      html`<div class="wallet">
        <header class="toolbar"><h1>${t("wallet.title")}</h1></header>
        <div class="wallet-pair">
        <form class="panel toolbar" role="search" @submit=${find}>
          <label for="wallet-player">${t("wallet.player")}</label>
          <input id="wallet-player" name="player" maxlength="128" autocomplete="off" spellcheck="false" required placeholder=${t("wallet.player_id")} />
          <button class="button primary">${t("wallet.find")}</button>
        </form>
        ${ledger()}
        </div>
        <section class="panel">${leaderboard()}</section>
      </div>`,
      root,
    );
  }

  function ledger() {
    const lines = Object.entries(page.ledger ?? {}).map(([check, { running, done }]) => {
      let says = html`<span class="muted">${t("wallet.ledger.never")}</span>`;
      if (running) says = html`<span class="badge warn">${t("wallet.ledger.running")}</span>`;
      else if (done?.error) says = html`<span class="badge bad">${t("wallet.ledger.failed")}</span> <span class="muted">${time(done.at, { date: true })}</span>`;
      else if (done) {
        says = html`<span class=${`badge ${done.good ? "good" : "bad"}`}>${t(done.good ? "wallet.ledger.good" : "wallet.ledger.bad")}</span>
          <span class="muted">${time(done.at, { date: true })} · ${t("wallet.ledger.entries", { entries: number(done.entries) })}</span>
          ${done.head ? html`<div class="mono muted wallet-id">${done.operations}:${done.head}</div>` : nothing}`;
      }
      return html`<dt>${t(`wallet.ledger.${check}`)}</dt><dd data-check=${check}>${says}</dd>`;
    });
    return html`<section class="panel"><h2>${t("wallet.ledger")}</h2>
      ${lines.length ? html`<dl class="wallet-facts">${lines}</dl>` : nothing}
      <p><a href="/health#ledger">${t("wallet.ledger.link")}</a></p></section>`;
  }

  function leaderboard() {
    const name = (one) => (app.lang === "zh" ? one.name_zh : one.name_en);
    return html`<header class="toolbar"><h2>${t("wallet.leaderboard")}</h2><span class="end"></span>
        <label>${t("wallet.currency")} <select data-key="currency" @change=${(event) => choose("currency", event.target.value)}>
          ${listed.currencies.map((one) => html`<option value=${one.currency} .selected=${one.currency === page.currency}>${money.name(one.currency)}</option>`)}</select></label>
        ${hasBooks()
          ? html`<label>${t("wallet.book")} <select data-key="book" @change=${(event) => choose("book", event.target.value)}>
              ${books.map((one) => html`<option value=${one.id} .selected=${one.id === page.book}>${name(one)}</option>`)}</select></label>`
          : nothing}
        <label>${t("wallet.period")} <select data-key="period" @change=${(event) => choose("period", event.target.value)}>
          ${periods().map(([value, key]) => html`<option value=${value} .selected=${value === page.period}>${t(key, { period: value })}</option>`)}</select></label>
      </header>
      ${page.problem ? html`<p class="error" role="alert">${said(page.problem)}</p>` : nothing}
      ${page.standings.length
        ? html`<table class="table"><thead><tr><th scope="col" class="number wallet-rank">#</th><th scope="col">${t("wallet.player")}</th><th scope="col" class="number">${t("wallet.score")}</th><th scope="col" class="number">${t("wallet.played")}</th></tr></thead>
          <tbody>${page.standings.map(
            (one) => html`<tr data-standing=${one.player_id} data-rank=${one.rank} data-score=${one.score}><td class="number">${one.rank}</td>
              <th scope="row"><a href=${`/wallet/${encodeURIComponent(one.player_id)}`}>${one.player_id}</a></th>
              <td class=${`number ${tone(one.score)}`}>${signed(one.score, money.digits(page.currency))}</td><td class="number">${one.hands}</td></tr>`,
          )}</tbody></table>
          ${page.board?.next_page_token ? html`<p><button class="button" @click=${() => rank(false)}>${t("wallet.more")}</button></p>` : nothing}`
        : page.board ? html`<p class="muted">${t("wallet.nobody")}</p>` : nothing}`;
  }

  draw();
  await rank(true);
  get("/api/health/ledger").then(
    ({ checks }) => {
      page.ledger = checks;
      if (!closed) draw();
    },
    () => {},
  );
  return function close() {
    closed = true;
    render(nothing, root);
  };
}

/** The first currency, and book of it, in which somebody has won or lost; `{}` where nobody has. */
async function played(listed, books) {
  const kinds = listed.flatMap((one) => (one.books ? books.map(({ id }) => ({ currency: one.currency, book: id })) : [{ currency: one.currency, book: "" }]));
  for (const kind of kinds) {
    const found = await get(`/api/leaderboard?${new URLSearchParams(kind)}`).catch(() => null);
    if (found?.standings.length) return kind;
  }
  return {};
}

/** All time, and the year, month and day of now by the calendar of China, as wallets are set up. */
function periods() {
  const day = new Intl.DateTimeFormat("sv-SE", { timeZone: "Asia/Shanghai" }).format(new Date());
  return [["", "wallet.period.all"], [day.slice(0, 4), "wallet.period.year"], [day.slice(0, 7), "wallet.period.month"], [day, "wallet.period.day"]];
}
