// The list of finished hands, with filters: /hands?table=&player=&rule_set=&since=&until=

import { get } from "../api.js";
import { has, language, time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { heard } from "../problems.js";

export const css = "hands";

const FILTERS = ["table", "player", "rule_set", "since", "until"];
const TIMES = ["since", "until"];

export async function open(root, params, app) {
  const { t } = app;
  app.title(t("hands.title"));
  const given = new URLSearchParams(location.search);
  const filters = Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""]));
  let ruleSets = [];
  let hands = [];
  let next = "";
  let loading = false;
  let problem = null;
  let asked = 0; // an answer to filters that were changed since is let go
  let closed = false;

  // What the API is asked: the times of the fields are the reader's own, those asked are UTC.
  function query(page) {
    const asking = new URLSearchParams();
    for (const name of FILTERS) {
      const moment = TIMES.includes(name) && filters[name] ? new Date(filters[name]) : null;
      if (moment && !Number.isNaN(moment.getTime())) asking.set(name, moment.toISOString());
      else if (!moment && filters[name]) asking.set(name, filters[name]);
    }
    if (page) asking.set("page_token", page);
    return asking;
  }

  async function load(page = "") {
    const mine = ++asked;
    loading = true;
    problem = null;
    draw();
    try {
      const answer = await get(`/api/hands?${query(page)}`);
      if (mine !== asked || closed) return;
      hands = page ? [...hands, ...answer.hands] : answer.hands;
      next = answer.next_page_token;
    } catch (error) {
      if (mine !== asked || closed) return;
      problem = error;
      if (!page) [hands, next] = [[], ""];
    }
    loading = false;
    draw();
  }

  function sought(event) {
    event.preventDefault();
    const form = new FormData(event.target);
    for (const name of FILTERS) filters[name] = form.get(name).trim();
    const shown = new URLSearchParams(FILTERS.filter((name) => filters[name]).map((name) => [name, filters[name]]));
    history.replaceState(history.state, "", location.pathname + (shown.size ? `?${shown}` : ""));
    load();
  }

  function cleared(event) {
    for (const name of FILTERS) filters[name] = "";
    history.replaceState(history.state, "", location.pathname);
    draw();
    event.target.form.reset(); // what was typed and not yet sought, too
    load();
  }

  const nameOf = (rules) => (language() === "zh" ? rules.name_zh : rules.name_en);
  const ruleName = (id) => {
    const known = ruleSets.find((rules) => rules.id === id);
    return known ? nameOf(known) : id;
  };

  function field(name, type) {
    return html`<div class="field"><label for=${`hands-${name}`}>${t(`hands.${name}`)}</label>
      <input id=${`hands-${name}`} name=${name} type=${type} .value=${filters[name]} maxlength="128" spellcheck="false"></div>`;
  }

  function row(hand) {
    const path = `/replay/${encodeURIComponent(hand.table_id)}/${hand.hand_number}`;
    const ending = `hands.ending.${hand.ending}`;
    return html`<tr data-table=${hand.table_id} data-hand=${hand.hand_number}>
      <td><a href=${path}>${t("hands.replay", { hand: hand.hand_number })}</a></td>
      <td><time datetime=${new Date(hand.ended_ms).toISOString()}>${time(hand.ended_ms, { date: true })}</time></td>
      <td>${ruleName(hand.rule_set)}</td>
      <td><span class=${`badge ending-${hand.ending}`}>${has(ending) ? t(ending) : hand.ending}</span></td>
      <td class="hands-players">${hand.player_ids.map((player, seat) => html`${seat ? ", " : nothing}<a href=${`/wallet/${encodeURIComponent(player)}`}>${player}</a>`)}</td>
      <td><a href=${`/tables/${encodeURIComponent(hand.table_id)}`}><code>${hand.table_id}</code></a></td>
    </tr>`;
  }

  function draw() {
    if (closed) return;
    render(
      html`<h1>${t("hands.title")}</h1>
        <form class="toolbar panel hands-filters" @submit=${sought}>
          ${field("table", "text")}${field("player", "text")}
          <div class="field"><label for="hands-rule_set">${t("hands.rule_set")}</label>
            <select id="hands-rule_set" name="rule_set">
              <option value="">${t("hands.all")}</option>
              ${ruleSets.map((rules) => html`<option value=${rules.id} .selected=${rules.id === filters.rule_set}>${nameOf(rules)}</option>`)}
            </select></div>
          ${field("since", "datetime-local")}${field("until", "datetime-local")}
          <button class="button primary">${t("hands.find")}</button>
          <button type="button" class="button" @click=${cleared}>${t("hands.clear")}</button>
        </form>
        ${problem ? html`<p class="error" role="alert" data-reason=${problem.reason}>${has(`hands.failed.${problem.reason}`) ? t(`hands.failed.${problem.reason}`) : heard(problem)}</p>` : nothing}
        ${
          hands.length
            ? html`<div class="scroll" tabindex="0" role="region" aria-label=${t("hands.title")}><table class="table hands">
                <thead><tr>${["hand", "ended", "rules", "ending", "players", "at"].map((name) => html`<th scope="col">${t(`hands.column.${name}`)}</th>`)}</tr></thead>
                <tbody>${hands.map(row)}</tbody>
              </table></div>`
            : loading || problem
              ? nothing
              : html`<p class="empty">${t("hands.none")}</p>`
        }
        <p role="status" class="muted">${loading ? t("hands.loading") : nothing}</p>
        ${next ? html`<button class="button" data-act="more" ?disabled=${loading} @click=${() => load(next)}>${t("hands.more")}</button>` : nothing}`,
      root,
    );
  }

  draw();
  load();
  try {
    const known = (await get("/api/rule-sets")).rule_sets;
    ruleSets = known.filter((rules) => rules.newest);
  } catch {
    ruleSets = filters.rule_set ? [{ id: filters.rule_set, name_zh: filters.rule_set, name_en: filters.rule_set }] : [];
  }
  draw();
  return () => {
    closed = true;
  };
}
