// The lobby: all live tables, filtered and followed, and the suite's figures.

import { get, stream } from "../api.js";
import { number, time } from "../i18n.js";
import { html, nothing, render, repeat, styled } from "../lit.js";
import {
  LiveTables,
  NO_FILTER,
  PHASES,
  SORT_NAMES,
  TROUBLES,
  filterOf,
  nameAt,
  searchOf,
  windAt,
} from "../tables.js";
import { figures } from "../figures.js";
import { signed, tone } from "../money.js";
import { ago } from "../spans.js";
import { reasonOf } from "../words.js";

export const css = ["lobby", "../vendor/uplot/uPlot.min"];

// The height of a table's row, which lobby.css keeps to as well.
const WIDE = matchMedia("(min-width: 1000px)");
const ROW_PX = { wide: 58, narrow: 122 };
const BEYOND = 12; // rows drawn above and below what is seen: so far one scrolls without a drawing
const TYPED_MS = 200;
const BAD = new Set(["stuck", "parked"]);

export async function open(root, params, app) {
  const { t } = app;
  const tables = new LiveTables();
  const names = await ruleSetNames(app.lang);
  let filter = filterOf(location.search);
  let seen = tables.look(filter);
  let state = { away: null, missing: {} };
  let isTold = false;
  let clockMs = 0; // how far the server's clock is ahead
  let frame = 0;
  let typed = 0;
  let drawn = { first: 0, last: -1 };

  app.title(t("lobby.title"));
  render(shell(t), root);
  const charts = figures(root.querySelector(".figures"), app);
  const controls = root.querySelector(".controls");
  const list = root.querySelector(".tables");
  const close = stream("/api/lobby/events", hear);
  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", drawRows);
  controls.addEventListener("input", chosen);
  list.addEventListener("click", keepOrder);
  app.keys([{ key: "/", label: t("lobby.keys.search"), run: () => root.querySelector("#lobby-q").focus() }]);
  draw();

  function hear(message) {
    isTold = true;
    clockMs = message.now - Date.now();
    tables.apply(message);
    for (const name of ["away", "missing"]) if (name in message) state = { ...state, [name]: message[name] };
    charts.hear(message, state.missing);
    draw();
  }

  function chosen(event) {
    const { name, value } = event.target;
    if (!(name in filter)) return;
    clearTimeout(typed);
    if (name === "q") typed = setTimeout(choose, TYPED_MS, { q: value.trim() });
    else choose({ [name]: value });
  }

  function choose(change) {
    filter = { ...filter, ...change };
    history.replaceState(history.state, "", location.pathname + searchOf(filter));
    draw();
    app.say(t("lobby.shown", { shown: number(seen.tables.length), all: number(tables.size) }));
  }

  function clear() {
    root.querySelector("#lobby-q").value = "";
    choose({ ...NO_FILTER, sort: filter.sort });
  }

  // The table page goes to the next and the previous table in this order, and back to this filter.
  function keepOrder() {
    sessionStorage.setItem("lobby.order", JSON.stringify(seen.tables.map((table) => table.id)));
    sessionStorage.setItem("lobby.search", searchOf(filter));
  }

  function scrolled() {
    if (!frame) frame = requestAnimationFrame(drawIfNeeded);
  }

  function drawIfNeeded() {
    frame = 0;
    const { first, last } = visible();
    if (first < drawn.first || last > drawn.last) drawRows();
  }

  // Which rows are seen: from the first to before the last.
  function visible() {
    const height = WIDE.matches ? ROW_PX.wide : ROW_PX.narrow;
    const count = seen.tables.length;
    const above = -list.getBoundingClientRect().top;
    const first = Math.min(Math.max(0, Math.floor(above / height)), Math.max(0, count - 1));
    return { height, count, first, last: Math.max(first, Math.min(count, Math.ceil((above + innerHeight) / height))) };
  }

  function draw() {
    seen = tables.look(filter);
    render(toolbar({ t, filter, seen, names, choose, clear }), controls);
    render(notes(), root.querySelector(".notes"));
    drawRows();
  }

  function notes() {
    const found = number(seen.tables.length);
    const isAll = seen.tables.length === tables.size;
    return html`
      ${
        state.away
          ? html`<p class="error" role="alert">${t(tables.size ? "lobby.away.old" : "lobby.away", {
              since: time(state.away.since),
              why: state.away.why,
            })}</p>`
          : nothing
      }
      <h2 class="shown">${isAll ? t("lobby.all", { all: found }) : t("lobby.shown", { shown: found, all: number(tables.size) })}</h2>
      ${
        isTold && seen.tables.length === 0 && !state.away
          ? html`<div class="empty">${
              tables.size
                ? html`<p>${t("lobby.none_passes")}</p><button class="button" @click=${clear}>${t("lobby.clear")}</button>`
                : html`<p>${t("lobby.none")}</p><pre><code>fangcheng bots --tables 4</code></pre>`
            }</div>`
          : nothing
      }`;
  }

  function drawRows() {
    const { height, count, ...seenNow } = visible();
    const first = Math.max(0, seenNow.first - BEYOND);
    const last = Math.min(count, seenNow.last + BEYOND);
    drawn = { first, last };
    const now = Date.now() + clockMs;
    render(
      html`<ol class="rows" start=${first + 1} ${styled({
        "--before": `${first * height}px`,
        "--after": `${Math.max(0, count - last) * height}px`,
      })}>
        ${repeat(
          seen.tables.slice(first, last),
          (table) => table.n,
          (table, index) => row(table, { t, names, now, place: first + index + 1, count }),
        )}
      </ol>`,
      list,
    );
  }

  return () => {
    if (isTold) keepOrder();
    close();
    charts.close();
    cancelAnimationFrame(frame);
    clearTimeout(typed);
    removeEventListener("scroll", scrolled);
    removeEventListener("resize", drawRows);
  };
}

// Rule sets by id, as people call them; without an evaluator to ask, as they are.
async function ruleSetNames(lang) {
  const names = new Map();
  try {
    const { rule_sets } = await get("/api/rule-sets");
    for (const one of rule_sets) names.set(one.id, lang === "zh" ? one.name_zh : one.name_en);
  } catch {
    // The ids have to do.
  }
  return names;
}

function shell(t) {
  return html`<h1 class="unseen">${t("lobby.title")}</h1>
    <section class="figures" aria-label=${t("lobby.figures")}></section>
    <form class="controls" role="search" aria-label=${t("lobby.filters")} @submit=${(event) => event.preventDefault()}></form>
    <div class="notes"></div>
    <div class="tables"></div>`;
}

function toolbar({ t, filter, seen, names, choose, clear }) {
  const { counts, totals } = seen;
  const select = (name, values, label) => {
    const known = new Set([...values, ...(filter[name] ? [filter[name]] : [])]);
    return html`<label class="choice"><span class="unseen">${t(`lobby.filter.${name}`)}</span>
      <select name=${name} class=${filter[name] ? "on" : ""}>
        <option value="" .selected=${filter[name] === ""}>${t(`lobby.any.${name}`)} (${number(totals[name])})</option>
        ${repeat(
          [...known],
          (value) => value,
          (value) =>
            html`<option value=${value} .selected=${filter[name] === value}>${label(value)} (${number(counts[name].get(value) ?? 0)})</option>`,
        )}
      </select></label>`;
  };
  const present = (name) => [...counts[name].keys()].sort();
  const chip = (kind) => {
    const count = counts.trouble.get(kind) ?? 0;
    const isOn = filter.trouble === kind;
    if (!count && !isOn) return nothing;
    return html`<button type="button" class="button chip ${BAD.has(kind) ? "bad" : ""}" data-trouble=${kind}
      aria-pressed=${isOn} @click=${() => choose({ trouble: isOn ? "" : kind })}>${t(`lobby.trouble.${kind}`)}
      <b>${number(count)}</b></button>`;
  };
  const isFiltered = ["rule_set", "pool", "phase", "trouble", "q"].some((name) => filter[name]);
  return html`<div class="toolbar">
      <label class="search"><span class="unseen">${t("lobby.search")}</span>
        <input id="lobby-q" name="q" type="search" placeholder=${t("lobby.search")} .defaultValue=${filter.q}
          autocomplete="off" spellcheck="false"></label>
      ${select("rule_set", present("rule_set"), (value) => names.get(value) ?? value)}
      ${select("pool", present("pool"), (value) => value)}
      ${select("phase", PHASES, (value) => t(`lobby.phase.${value}`))}
      <label class="choice end"><span class="label">${t("lobby.sort")}</span>
        <select name="sort" aria-label=${t("lobby.sort")}>
          ${SORT_NAMES.map((name) => html`<option value=${name} .selected=${filter.sort === name}>${t(`lobby.sort.${name}`)}</option>`)}
        </select></label>
    </div>
    <div class="toolbar troubles" role="group" aria-label=${t("lobby.filter.trouble")}>
      ${
        counts.trouble.size || filter.trouble
          ? ["any", ...TROUBLES].map(chip)
          : html`<span class="badge good">${t("lobby.no_trouble")}</span>`
      }
      ${isFiltered ? html`<button type="button" class="button quiet" @click=${clear}>${t("lobby.clear")}</button>` : nothing}
    </div>`;
}

function row(table, { t, names, now, place, count }) {
  const isPlaying = table.phase === "playing";
  const hands = table.hands ? t("lobby.hand_of", { hand: table.hand, hands: table.hands }) : t("lobby.hand", { hand: table.hand });
  return html`<li class="row" aria-posinset=${place} aria-setsize=${count} data-table=${table.id} data-phase=${table.phase}
      data-hand=${table.hand} data-wall=${table.wall}>
    <a href="/tables/${encodeURIComponent(table.id)}">
      <span class="what">
        <span class="rules">${names.get(table.rule_set) ?? table.rule_set}</span>
        <span class="more muted">${[table.pool || (table.mode && t(`lobby.mode.${table.mode}`)), ...Object.entries(table.labels).map(([key, value]) => `${key} ${value}`)].filter(Boolean).join(" · ") || table.id.slice(-8)}</span>
      </span>
      <span class="where">
        <span class="phase ${table.phase}">${isPlaying ? hands : t(`lobby.phase.${table.phase}`)}</span>
        <span class="wall muted">${
          isPlaying
            ? html`<span class="bar" aria-hidden="true"><span ${styled({ "--left": Math.min(1, table.wall / 136) })}></span></span>${t("lobby.wall", { wall: table.wall })}`
            : table.phase === "between_hands" || table.closed
              ? table.closed
                ? t("lobby.closed", { reason: reasonOf(table.closed) })
                : hands
              : nothing
        }</span>
      </span>
      <span class="seats">${[0, 1, 2, 3].map((seat) => seatOf(table, seat, t))}</span>
      <span class="troubles">${table.kinds.map((kind) => badge(table, kind, { t, now }))}</span>
      <span class="age muted"><span>${ago(now - table.created)}</span>${
        table.spectators ? html`<span class="watching" title=${t("lobby.watching")}>◉ ${number(table.spectators)}</span>` : nothing
      }</span>
    </a>
  </li>`;
}

function seatOf(table, seat, t) {
  const wind = windAt(table, seat);
  const standing = table.standings[seat];
  const name = nameAt(table, seat);
  const isAway = table.away.includes(seat);
  const isTrustee = table.trustees.includes(seat);
  const mark = isTrustee ? "trustee" : isAway ? "away" : table.bots.includes(seat) ? "bot" : "";
  return html`<span class="seat ${wind === 0 ? "dealer" : ""} ${isAway ? "is-away" : ""}">
    <span class="wind" title=${t(`lobby.wind.${wind}.title`)}>${t(`lobby.wind.${wind}`)}</span>
    <span class="name">${name || t("lobby.vacant")}</span>
    ${mark ? html`<span class="mark ${mark}" title=${t(`lobby.mark.${mark}.title`)}>${t(`lobby.mark.${mark}`)}</span>` : nothing}
    <span class="standing ${tone(standing) || "muted"}">${signed(standing)}</span>
  </span>`;
}

// Trustees, absent players and empty seats are seen at their seats; the badge says the rest.
function badge(table, kind, { t, now }) {
  if (["trustee", "away", "vacant"].includes(kind)) return nothing;
  const since = table.troubles[kind];
  return html`<span class="badge ${BAD.has(kind) ? "bad" : "warn"}" data-trouble=${kind}>${t(`lobby.trouble.${kind}`)}${
    since ? html` <span class="since">${ago(now - since)}</span>` : nothing
  }</span>`;
}
