// A finished hand again, step by step: /replay/:table/:hand, and /r/:token for who has a link.

import { get } from "../api.js";
import { has, language, number, time } from "../i18n.js";
import { guard, html, nothing, render } from "../lit.js";
import { currencies } from "../money.js";
import { heard } from "../problems.js";
import { resultLines, resultWords } from "../result.js";
import { drawTable, nameOf } from "../table.js";
import { formatTiles } from "../tiles.js";
import { told } from "../words.js";
import { checksPanel } from "./replay.checks.js";
import { evaluatorPanel } from "./replay.evaluator.js";
import { linksPanel } from "./replay.links.js";

export const css = ["board", "result", "replay"];

const SEATS = [0, 1, 2, 3];
const SPEEDS = [0.5, 1, 2, 4, 8];
const SIGNS = {
  start: "M1 1h3v12H1zM16 1v12L5 7z",
  turn_back: "M9 1v12L0 7zM18 1v12L9 7z",
  back: "M13 1v12L4 7z",
  on: "M5 1v12l9-6z",
  turn_on: "M0 1v12l9-6zM9 1v12l9-6z",
  end: "M14 1h3v12h-3zM2 1v12l11-6z",
};
const STEP_MS = 1_000;
const ADDRESS_AFTER_MS = 150; // browsers refuse an address that changes too often
const BEGIN_A_TURN = ["front", "dealt_out"];

export async function open(root, params, app) {
  const { t } = app;
  const isLink = params.token !== undefined;
  const api = isLink
    ? `/api/r/${encodeURIComponent(params.token)}`
    : `/api/replay/${encodeURIComponent(params.table)}/${encodeURIComponent(params.hand)}`;
  app.title(isLink ? t("replay.title.link") : t("replay.title", { hand: params.hand }));

  let replay;
  try {
    replay = await get(api);
  } catch (problem) {
    render(failure(problem, t, isLink), root);
    return () => {};
  }
  const { record, states } = replay;
  const money = currencies(replay.currencies);
  const last = states.length - 1;
  const turns = turnsOf(record.events);
  const given = new URLSearchParams(location.search);
  let step = within(given.get("step"), last) ?? Math.max(1, turns[0] ?? 0);
  let seat = within(given.get("seat"), 3) ?? record.events.find((event) => event.hand_ended)?.hand_ended.hand.win?.winners[0] ?? 0;
  let speed = 1;
  let timer = 0;
  let addressTimer = 0;
  let copied = "";
  const narrow = matchMedia("(max-width: 700px)");
  const lines = record.events.map((event, at) => told(event, states[at + 1], replay.rule_set));
  app.title(t("replay.title", { hand: record.hand_number }));

  const evaluator = evaluatorPanel(api, app, () => draw());
  const checks = checksPanel(replay, app, () => draw());
  const links = !isLink && app.person?.role === "operator" ? linksPanel(api, app, () => draw(), () => location.search) : null;

  function go(to) {
    const next = Math.min(last, Math.max(0, to));
    if (next === last) pause();
    if (next !== step) {
      step = next;
      clearTimeout(addressTimer);
      addressTimer = setTimeout(writeAddress, ADDRESS_AFTER_MS);
    }
    draw();
  }

  function writeAddress() {
    history.replaceState(history.state, "", `${location.pathname}?step=${step}&seat=${seat}`);
  }

  function choose(other) {
    seat = other;
    writeAddress();
    draw();
  }

  const turnAfter = () => turns.find((at) => at > step) ?? last;
  const turnBefore = () => turns.findLast((at) => at < step) ?? 0;

  function play() {
    if (timer) return pause();
    if (step === last) step = 0;
    timer = setInterval(() => go(step + 1), STEP_MS / speed);
    draw();
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    draw();
  }

  function setSpeed(value) {
    speed = value;
    if (timer) {
      clearInterval(timer);
      timer = setInterval(() => go(step + 1), STEP_MS / speed);
    }
    draw();
  }

  const keys = [
    { key: "ArrowLeft", run: () => go(step - 1) },
    { key: "ArrowRight", run: () => go(step + 1) },
    { key: "ArrowUp", run: () => go(turnBefore()) },
    { key: "ArrowDown", run: () => go(turnAfter()) },
    { key: "Home", run: () => go(0) },
    { key: "End", run: () => go(last) },
    { key: " ", run: play },
  ].map((one) => ({ ...one, label: t(`replay.key.${one.key.trim() || "Space"}`) }));

  // A slider has a meaning of its own for some of them.
  function pressedOnSlider(event) {
    const known = keys.find((one) => one.key === event.key);
    if (!known || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    known.run();
  }

  async function copyText() {
    const text = inText(replay, lines, t);
    try {
      await navigator.clipboard.writeText(text);
      copied = "done";
    } catch {
      copied = "failed";
    }
    draw();
  }

  function draw() {
    const state = states[step];
    const said = step ? lines[step - 1] : t("replay.before");
    render(
      html`<article class="replay" data-step=${step} data-last=${last} data-seat=${seat} data-playing=${Boolean(timer)}>
        ${head(replay, app, isLink, params.token)}
        <section class="panel replay-controls" aria-label=${t("replay.controls")}>
          <div class="toolbar">
            ${button("start", () => go(0), step === 0)}
            ${button("turn_back", () => go(turnBefore()), step === 0)}
            ${button("back", () => go(step - 1), step === 0)}
            <button class="button primary" data-act="play" @click=${play}>${t(timer ? "replay.pause" : "replay.play")}</button>
            ${button("on", () => go(step + 1), step === last)}
            ${button("turn_on", () => go(turnAfter()), step === last)}
            ${button("end", () => go(last), step === last)}
            <label class="replay-speed">${t("replay.speed")}
              <select @change=${(event) => setSpeed(Number(event.target.value))}>
                ${SPEEDS.map((value) => html`<option value=${value} .selected=${value === speed}>${number(value)}×</option>`)}
              </select>
            </label>
          </div>
          <input type="range" class="replay-slider" min="0" max=${last} .value=${String(step)} aria-label=${t("replay.slider")}
            aria-valuetext=${t("replay.step", { step, last })} @keydown=${pressedOnSlider} @input=${(event) => go(Number(event.target.value))}>
          <p class="replay-said"><span class="badge">${t("replay.step", { step, last })}</span>
            <span aria-live=${timer ? "off" : "polite"}>${said}</span></p>
        </section>
        <div class="replay-main">
          <div class="replay-table">
            ${guard([step, seat, narrow.matches], () => drawTable(state, { perspective: seat, narrow: narrow.matches, ruleSet: replay.rule_set, linked: !isLink }))}
          </div>
          <div class="replay-beside">
            <section class="panel replay-log">
              <h2 id="replay-events">${t("replay.events")}</h2>
              <ol class="replay-events" tabindex="0" aria-labelledby="replay-events">${lines.map((line, at) =>
                eventLine(line, at + 1, step, record.events[at], go),
              )}</ol>
            </section>
            <section class="panel">
              <h2>${t("replay.evaluator")}</h2>
              <div class="tabs" role="group" aria-label=${t("replay.seat")}>${SEATS.map(
                (one) => html`<button class="button" aria-pressed=${one === seat} data-choose=${one} @click=${() => choose(one)}>${nameOf(state, one)}</button>`,
              )}</div>
              ${evaluator.drawn(step, seat, record.events[step])}
            </section>
          </div>
        </div>
        ${state.ended ? html`<div class="panel replay-result">${resultWords(state, replay.rule_set, money)}
          ${state.settled && !isLink
            ? html`<p><a class="button" data-settlement href=${`/settlements/${encodeURIComponent(state.table_id)}/${state.hand_number}`}>${t("replay.settlement")}</a></p>`
            : nothing}</div>` : nothing}
        <section class="panel replay-take">
          <h2>${t("replay.take")}</h2>
          <div class="toolbar">
            <button class="button" data-act="copy" @click=${copyText}>${t("replay.copy")}</button>
            <a class="button" data-act="json" href=${`${api}/record.json`} download>${t("replay.json")}</a>
            <a class="button" data-act="binpb" href=${`${api}/record.binpb`} download>${t("replay.binpb")}</a>
          </div>
          <p class="muted" role="status">${copied ? t(`replay.copy.${copied}`) : nothing}</p>
        </section>
        ${checks.drawn()}
        ${links ? links.drawn() : nothing}
      </article>`,
      root,
    );
    showCurrent(root);
  }

  function button(name, act, disabled) {
    const words = t(`replay.${name}`);
    return html`<button class="button replay-step" data-act=${name} title=${words} aria-label=${words} ?disabled=${disabled} @click=${act}>
      <svg width="18" height="14" viewBox="0 0 18 14" fill="currentColor" aria-hidden="true"><path d=${SIGNS[name]}></path></svg></button>`;
  }

  app.keys(keys);
  narrow.addEventListener("change", draw);
  draw();
  return () => {
    narrow.removeEventListener("change", draw);
    clearInterval(timer);
    clearTimeout(addressTimer);
  };
}

const within = (text, most) => (/^\d{1,5}$/.test(text ?? "") ? Math.min(Number(text), most) : undefined);

// The steps after which a turn begins.
function turnsOf(events) {
  return events.flatMap((event, at) => {
    const begins = event.dealt || event.hand_ended || (event.drawn && BEGIN_A_TURN.includes(event.drawn.origin));
    return begins ? [at + 1] : [];
  });
}

function failure(problem, t, isLink) {
  const key = `replay.failed.${problem.reason}`;
  return html`<section class="panel error" role="alert" data-reason=${problem.reason}>
    <h1>${t(isLink ? "replay.failed.link" : "replay.failed")}</h1>
    <p>${has(key) ? t(key) : heard(problem)}</p>
    ${isLink ? nothing : html`<p><a href="/hands">${t("replay.to_hands")}</a></p>`}
  </section>`;
}

function head(replay, app, isLink, token) {
  const { t } = app;
  const { record, rule_set: rules, states } = replay;
  const name = rules ? (language() === "zh" ? rules.name_zh : rules.name_en) : record.rules.id;
  const began = record.events[0]?.time;
  const options = Object.entries(states[0].rules.options).map(([id, value]) => optionText(id, value, rules));
  return html`<header class="replay-head">
    <h1>${t("replay.title", { hand: record.hand_number })}</h1>
    <p class="muted">
      ${isLink ? html`<code>${record.table_id}</code>` : html`<a href=${`/tables/${encodeURIComponent(record.table_id)}`}><code>${record.table_id}</code></a>`}
      · ${name} <span title=${t("replay.revision")}>r${record.rules.revision}</span>
      ${options.length ? html` · ${options.join(", ")}` : nothing}
      ${began ? html` · <time datetime=${began}>${time(Date.parse(began), { date: true })}</time>` : nothing}
    </p>
    ${
      isLink
        ? html`<p class="panel replay-note">${t("replay.link.note", { until: time(expiresMs(token), { date: true }) })}</p>`
        : html`<nav class="toolbar" aria-label=${t("replay.hands")}>
            ${record.hand_number > 1 ? html`<a class="button" href=${hand(record, -1)}>${t("replay.hand_before")}</a>` : nothing}
            <a class="button" href=${hand(record, 1)}>${t("replay.hand_after")}</a>
            <a class="button" href=${`/hands?table=${encodeURIComponent(record.table_id)}`}>${t("replay.hands_of_table")}</a>
          </nav>`
    }
  </header>`;
}

// An option as it was played with: `cap 50`, `封顶 50`, `飘 ✓`.
function optionText(id, value, rules) {
  const zh = language() === "zh" ? rules?.options.find((option) => option.id === id)?.name_zh : "";
  const name = zh || id.replaceAll("_", " ");
  if (typeof value !== "boolean") return `${name} ${value}`;
  return `${name} ${value ? "✓" : "✗"}`;
}

const hand = (record, by) => `/replay/${encodeURIComponent(record.table_id)}/${record.hand_number + by}`;

// When a link ends, as its token says to anybody; whether that is so, the console has checked.
function expiresMs(token) {
  const claims = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
  return claims.exp * 1_000;
}

function eventLine(line, at, step, event, go) {
  const kind = Object.keys(event).find((key) => key !== "number" && key !== "time");
  return html`<li class=${at === step ? "current" : at > step ? "later" : ""} data-event=${at} data-kind=${kind}>
    <button @click=${() => go(at)} aria-current=${at === step ? "step" : nothing}><span class="muted">${at}</span> ${line || kind}</button>
  </li>`;
}

// Without scrolling the page itself.
function showCurrent(root) {
  const list = root.querySelector(".replay-events");
  const current = list?.querySelector(".current");
  if (!current) return;
  const top = current.offsetTop; // the list is what it is placed by
  if (top < list.scrollTop || top + current.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 2;
  }
}

// The whole hand as text.
function inText(replay, lines, t) {
  const { record, states } = replay;
  const plain = document.createElement("div");
  const texts = lines.map((line) => {
    render(html`${line}`, plain);
    return plain.textContent.replace(/\s+/g, " ").trim();
  });
  const final = states.findLast((state) => state.ended);
  return [
    `${t("replay.title", { hand: record.hand_number })} · ${record.table_id}`,
    `${record.rules.id}, r${record.rules.revision}`,
    SEATS.map((one) => `${one} ${states[0].seats[one].name}`).join("  "),
    t("replay.text.wall", { wall: formatTiles(record.wall) }),
    "",
    ...texts.filter(Boolean).map((text, at) => `${at + 1}. ${text}`),
    "",
    ...(final ? resultLines(final, replay.rule_set, currencies(replay.currencies)) : []),
    "",
  ].join("\n");
}
