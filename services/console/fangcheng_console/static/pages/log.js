// The operator log: what was done through the console, by whom, why, and what came of it.

import { problemText, sentence, shortTable, targetText, verbName } from "../acts.js";
import { get, post } from "../api.js";
import { time } from "../i18n.js";
import { html, nothing, render, repeat } from "../lit.js";
import { settlementPath } from "../routes.js";

export const css = "log";

const VERBS = [
  ...["void_hand", "close_table", "close_table_after_hand", "remove_player", "pause_pool", "close_pool", "resume_pool"],
  ...["freeze_player", "unfreeze_player", "bar_pair", "unbar_pair", "reverse_settlement", "collect_receivable"],
  ...["write_off_receivable", "reveal", "make_link", "open_link", "revoke_link", "sign_in"],
];
const STATUSES = ["done", "refused", "unknown"];
const BADGES = { done: "badge good", refused: "badge warn", unknown: "badge bad" };
const FILTERS = ["person", "verb", "target", "since", "until", "status"];

export function open(root, params, app) {
  const { t } = app;
  const asked = new URLSearchParams(location.search);
  const filters = Object.fromEntries(FILTERS.map((name) => [name, asked.get(name) ?? ""]));
  const state = {
    tab: asked.get("tab") === "tables" ? "tables" : "here",
    stories: null,
    before: null, // where the next page begins
    actions: null,
    pageToken: "",
    currencies: [],
    problem: null,
    told: "",
    busy: false,
  };
  let isOpen = true;
  let newest = 0; // of what was asked for
  app.title(t("log.title"));

  // What the API is asked for: moments as numbers.
  function wanted() {
    const query = new URLSearchParams();
    if (!filters.verb) query.set("but", "sign_in");
    for (const name of ["person", "verb", "target", "status"]) if (filters[name]) query.set(name, filters[name]);
    for (const name of ["since", "until"]) {
      const ms = Date.parse(filters[name]);
      if (ms > 0) query.set(`${name}_ms`, ms);
    }
    return query;
  }

  async function read({ more = false } = {}) {
    const number = ++newest;
    state.busy = true;
    draw();
    try {
      if (state.tab === "here") await readHere(more, number);
      else await readTables(more, number);
      if (number === newest) state.problem = null;
    } catch (problem) {
      if (number === newest) state.problem = problem;
    }
    if (!isOpen || number !== newest) return;
    state.busy = false;
    draw();
  }

  async function readHere(more, number) {
    const query = wanted();
    if (more) query.set("before", state.before);
    const page = await get(`/api/log?${query}`);
    if (number !== newest) return;
    state.stories = more ? [...state.stories, ...page.stories] : page.stories;
    state.before = page.before;
    state.currencies = page.currencies;
  }

  async function readTables(more, number) {
    const query = new URLSearchParams({ table_id: filters.target });
    if (more) query.set("page_token", state.pageToken);
    const page = await get(`/api/log/tables?${query}`);
    if (number !== newest) return;
    state.actions = more ? [...state.actions, ...page.actions] : page.actions;
    state.pageToken = page.page_token;
  }

  function go() {
    const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
    if (state.tab === "tables") query.set("tab", "tables");
    history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    state.told = "";
    read();
  }

  function submitted(event) {
    event.preventDefault();
    for (const name of FILTERS) {
      const field = event.target.elements[name];
      if (field) filters[name] = field.value.trim();
    }
    go();
  }

  function clear(event) {
    for (const name of FILTERS) filters[name] = "";
    draw();
    event.target.form.reset(); // what was typed and not yet sought, too
    go();
  }

  async function again(story) {
    try {
      await post("/api/operate/repeat", { request_id: story.request_id });
      state.told = t("log.ended.done", { person: verbName(story.verb) });
    } catch (problem) {
      state.told = problemText(problem);
    }
    await read();
  }

  // The head: tabs and filters.

  const tab = (name) => html`<button type="button" role="tab" id="log-tab-${name}" aria-controls="log-list"
    aria-selected=${state.tab === name} @click=${() => {
      state.tab = name;
      go();
    }}>${t(`log.${name}`)}</button>`;

  const field = (name, label, more = {}) => html`<div class="field">
    <label for="log-${name}">${label}</label>
    <input id="log-${name}" name=${name} type=${more.type ?? "text"} .value=${filters[name]} step="1"
      placeholder=${more.hint ?? ""} maxlength="256" autocomplete="off" spellcheck="false">
  </div>`;

  const choice = (name, label, any, options) => html`<div class="field">
    <label for="log-${name}">${label}</label>
    <select id="log-${name}" name=${name}>
      <option value="">${any}</option>
      ${options.map(([value, words]) => html`<option value=${value} .selected=${filters[name] === value}>${words}</option>`)}
    </select>
  </div>`;

  function head() {
    const file = (format) => {
      const query = wanted();
      query.set("format", format);
      return `/api/log/export?${query}`;
    };
    if (state.tab === "tables") {
      return html`<form class="toolbar" @submit=${submitted}>
        ${field("target", t("log.open.table"))}
        <button class="button primary log-find">${t("log.find")}</button>
      </form>`;
    }
    return html`<form class="log-filters" @submit=${submitted}>
      ${field("person", t("log.person"), { hint: "operator:mei" })}
      ${choice("verb", t("log.verb"), t("log.verb.any"), VERBS.map((verb) => [verb, verbName(verb)]))}
      ${field("target", t("log.target"), { hint: t("log.target.hint") })}
      ${field("since", t("log.since"), { type: "datetime-local" })}
      ${field("until", t("log.until"), { type: "datetime-local" })}
      ${choice("status", t("log.status"), t("log.status.any"), STATUSES.map((one) => [one, t(`log.status.${one}`)]))}
      <div class="log-buttons">
        <button class="button primary">${t("log.find")}</button>
        <button type="button" class="button" @click=${clear}>${t("log.clear")}</button>
        <a class="button quiet" download href=${file("csv")}>${t("log.csv")}</a>
        <a class="button quiet" download href=${file("json")}>${t("log.json")}</a>
      </div>
    </form>`;
  }

  // The lines.

  function line(story) {
    const isAct = story.kind === "act";
    return html`<li data-number=${story.number} data-status=${story.status}>
      <details>
        <summary>
          <time datetime=${new Date(story.ms).toISOString()}>${time(story.ms, { date: true })}</time>
          <span class="log-person">${story.person || "—"}</span>
          <span class="log-what"><strong>${verbName(story.verb)}</strong> ${targetText(story.target)}</span>
          <span class="log-reason">${story.reason}</span>
          ${isAct ? html`<span class=${BADGES[story.status]}>${t(`log.status.${story.status}`)}</span>` : nothing}
        </summary>
        <div class="log-more">
          ${
            story.reason
              ? html`<p>${t("log.reason")}: ${story.reason}${story.case_id ? ` (${t("log.case", { case: story.case_id })})` : nothing}</p>`
              : nothing
          }
          ${links(story.target)}
          ${isAct ? acted(story) : noted(story)}
        </div>
      </details>
    </li>`;
  }

  function links(target) {
    const path = (...parts) => parts.map(encodeURIComponent).join("/");
    const { table_id: table, hand_number: hand, settlement } = target;
    const known = [];
    if (table) known.push([`/tables/${path(table)}`, t("log.open.table")]);
    if (table && hand) known.push([`/replay/${path(table, hand)}`, t("log.open.hand")]);
    if (settlement) known.push([settlementPath(settlement), t("log.open.settlement")]);
    for (const player of [target.player_id, target.other_id]) {
      if (player) known.push([`/operate?player=${path(player)}`, t("log.open.player", { player })]);
    }
    if (!known.length) return nothing;
    return html`<p class="log-links">${known.map(([href, words]) => html`<a href=${href}>${words}</a>`)}</p>`;
  }

  const says = (list) =>
    list.length ? html`<ul>${list.map((said) => html`<li>${sentence(said, state.currencies)}</li>`)}</ul>` : nothing;

  function acted(story) {
    const { preview } = story; // an act that is not shown before has none
    return html`${
        preview ? html`<h3>${t("log.shown")}</h3>${says([...preview.says, ...preview.warnings])}` : nothing
      }
      <h3>${t("log.came")}</h3>
      ${story.later.length ? html`<ol class="log-later">${story.later.map(later)}</ol>` : html`<p>${t("log.came.nothing")}</p>`}
      ${
        preview && story.status === "unknown"
          ? html`<p><button type="button" class="button" @click=${() => again(story)}>${t("log.again")}</button></p>`
          : nothing
      }
      <p class="muted log-ids">${t("log.line", { number: story.number })} · ${t("log.request")} <code>${story.request_id}</code></p>`;
  }

  function later(one) {
    const words = one.kind === "repeat" ? "log.repeated" : `log.ended.${one.status}`;
    return html`<li>
      <time datetime=${new Date(one.ms).toISOString()}>${time(one.ms)}</time>
      ${t(words, { person: one.person })}
      ${one.problem ? html`<span class="muted">${one.problem}: ${one.message}</span>` : nothing}
      ${says(one.says)}
    </li>`;
  }

  function noted(story) {
    const { role, expires_ms: expires } = story.detail;
    return html`
      ${role ? html`<p>${t("log.detail.role", { role: t(`shell.role.${role}`) })}</p>` : nothing}
      ${expires ? html`<p>${t("log.detail.expires", { time: time(expires, { date: true }) })}</p>` : nothing}
      <p class="muted log-ids">${t("log.line", { number: story.number })}</p>`;
  }

  function action(one) {
    return html`<tr>
      <td><time datetime=${new Date(one.ms).toISOString()}>${time(one.ms, { date: true })}</time></td>
      <td>${one.person}</td>
      <td><strong>${verbName(one.verb)}</strong> ${one.detail}</td>
      <td><a href="/tables/${encodeURIComponent(one.table_id)}">…${shortTable(one.table_id)}</a></td>
      <td>${one.reason}${one.case_id ? html` <span class="muted">(${t("log.case", { case: one.case_id })})</span>` : nothing}</td>
      <td>${
        one.number === null
          ? "—"
          : html`<button type="button" class="button quiet" @click=${() => {
              state.tab = "here";
              Object.assign(filters, { target: one.table_id });
              go();
            }}>${one.number}</button>`
      }</td>
    </tr>`;
  }

  function list() {
    if (state.tab === "here") {
      if (state.stories === null) return nothing;
      if (!state.stories.length) return html`<p class="empty">${t("log.none")}</p>`;
      // By their numbers: a line that is open stays open, and none opens in its place.
      return html`<ol class="log-lines">${repeat(state.stories, (story) => story.number, line)}</ol>`;
    }
    if (state.actions === null) return nothing;
    if (!state.actions.length) return html`<p class="empty">${t("log.none")}</p>`;
    return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("log.tables")}><table class="table">
      <thead><tr>
        ${["log.when", "log.person", "log.verb", "log.open.table", "log.reason", "log.here"].map(
          (words) => html`<th scope="col">${t(words)}</th>`,
        )}
      </tr></thead>
      <tbody>${state.actions.map(action)}</tbody>
    </table></div>`;
  }

  function draw() {
    const hasMore = state.tab === "here" ? state.before !== null : state.pageToken !== "";
    render(
      html`<h1>${t("log.title")}</h1>
        <div class="tabs" role="tablist" aria-label=${t("log.title")}>${tab("here")}${tab("tables")}</div>
        <p class="muted">${t(state.tab === "here" ? "log.lead" : "log.tables.lead")}</p>
        ${head()}
        <p role="status" class="log-told">${state.told}</p>
        ${state.problem ? html`<p class="error" role="alert">${problemText(state.problem)}</p>` : nothing}
        <div id="log-list" role="tabpanel" aria-labelledby="log-tab-${state.tab}" aria-busy=${state.busy}>${list()}</div>
        ${
          hasMore
            ? html`<p><button type="button" class="button" ?disabled=${state.busy}
                @click=${() => read({ more: true })}>${t("log.older")}</button></p>`
            : nothing
        }`,
      root,
    );
  }

  read();
  return () => {
    isOpen = false;
  };
}
