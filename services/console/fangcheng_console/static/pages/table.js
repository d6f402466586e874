// A table as it is played: the picture, what was said, and an operator's look at the tiles.

import { tableMenu } from "../actmenu.js";
import { shortTable } from "../acts.js";
import { get, post, stream } from "../api.js";
import { has, number, time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { currencies } from "../money.js";
import { heard, said } from "../problems.js";
import { resultWords } from "../result.js";
import { drawTable, nameOf, runRing } from "../table.js";
import { LiveTables, NO_FILTER } from "../tables.js";
import { callOf, kindOf, meldName, reasonOf, told } from "../words.js";

export const css = ["board", "result", "table"];

const LOGGED = 60;
const SHOWN = 40; // of them, for not each is told in words
const NARROW_PIXELS = 600;
const SAY_MS = 2_000;
// What is told after a call and takes nothing of it back.
const AFTER_A_CALL = new Set(["drawn", "hand_settled", "trustee_changed", "connection_changed", "treasure_turned", "ready_asked", "ready_given"]);

export async function open(root, { id }, app) {
  const { t } = app;
  const path = `/api/tables/${encodeURIComponent(id)}`;
  const isOperator = app.person.role === "operator";
  const [about, sets] = await Promise.all([
    get(path).then((answer) => answer.table),
    get("/api/rule-sets").then((answer) => answer.rule_sets, () => []),
  ]);
  const ruleSet = sets.find((one) => one.id === about.rules.id && one.revision === about.rules.revision) ?? null;
  const rulesName = ruleSet ? (app.lang === "zh" ? ruleSet.name_zh : ruleSet.name_en) : about.rules.id;
  app.title(rulesName);

  const page = {
    latest: null, // the newest message
    drawn: null, // the one that is drawn; an older one while it stands still
    skewMs: 0,
    isPaused: false,
    perspective: 0,
    isNarrow: innerWidth < NARROW_PIXELS,
    log: [], // {number, ms, text}
    result: null, // the state of the newest hand that has ended
    isResultHidden: false,
    reveal: null, // {reveal_id, hand_number} while its stream is shown
    revealOver: 0, // the hand whose revealed stream has ended
    problem: null,
  };

  // Streams.

  let close = () => {};
  let isOpen = true;

  function follow() {
    close();
    if (!isOpen) return;
    page.latest = page.drawn = null;
    page.log = [];
    page.problem = null;
    const way = page.reveal ? `${path}/revealed/${page.reveal.reveal_id}/events` : `${path}/events`;
    close = stream(way, took, refused);
  }

  function took(message) {
    page.latest = message;
    page.problem = null;
    page.skewMs = message.state.clock.server_ms - Date.now();
    if (page.reveal && message.stream.status === "ended") return revealEnded(message);
    // Paused, all stands still: the picture, what was said, and the result.
    if (!page.isPaused || page.drawn === null) take(message);
    draw();
  }

  function take(message) {
    const { state } = message;
    page.drawn = message;
    log(message.log, state);
    if (state.stakes.length) askForCurrencies();
    if (!state.ended) return;
    if (page.result?.hand_number !== state.hand_number) page.isResultHidden = false;
    page.result = state;
  }

  function refused(problem) {
    if (page.reveal) {
      forget();
      page.reveal = null;
      follow();
    } else {
      page.problem = problem;
    }
    draw();
  }

  // What the stakes are called. Where nothing is staked, there may be no wallet to ask.
  let money = currencies([]);
  let isMoneyAsked = false;

  async function askForCurrencies() {
    if (isMoneyAsked) return;
    isMoneyAsked = true;
    try {
      money = currencies((await get("/api/currencies")).currencies);
      draw();
    } catch {
      // The ids have to do.
    }
  }

  let saidAt = 0;

  function log(events, state) {
    const last = page.log.at(-1)?.number ?? 0;
    const fresh = events
      .filter((event) => Number(event.number) > last)
      .map((event) => ({
        number: Number(event.number),
        ms: Date.parse(event.time),
        text: told(event, state, ruleSet),
        kind: kindOf(event),
        call: callOf(event),
      }));
    page.log = [...page.log, ...fresh].slice(-LOGGED);
    // Of several the newest is said: what is older is no news.
    const said = fresh.findLast((entry) => entry.text);
    if (said && Date.now() - saidAt > SAY_MS) {
      saidAt = Date.now();
      app.say(said.text);
    }
  }

  // What an operator reveals: a hand at a time, and its stream is this operator's own.

  const kept = `reveal.${id}`;
  const forget = () => sessionStorage.removeItem(kept);

  function revealEnded(message) {
    page.revealOver = page.reveal.hand_number;
    page.reveal = null;
    forget();
    if (message.state.closed) page.revealOver = 0;
    follow();
    draw();
  }

  function toggleReveal() {
    if (page.reveal) {
      page.reveal = null;
      forget();
      follow();
      draw();
    } else {
      ask();
    }
  }

  async function sent(event) {
    event.preventDefault();
    const form = event.target;
    const problem = form.querySelector("[role=alert]");
    const button = form.querySelector("button[type=submit]");
    const values = new FormData(form);
    problem.textContent = "";
    button.disabled = true;
    try {
      page.reveal = await post(`${path}/revealed`, { reason: values.get("reason"), case_id: values.get("case_id") });
      sessionStorage.setItem(kept, JSON.stringify(page.reveal));
      page.revealOver = 0;
      form.closest("dialog").close();
      follow();
      draw();
    } catch (error) {
      problem.textContent = has(`table.refused.${error.reason}`) ? t(`table.refused.${error.reason}`) : heard(error);
    } finally {
      button.disabled = false;
    }
  }

  function ask() {
    const dialog = root.querySelector("#reveal");
    dialog.querySelector("form").reset();
    dialog.querySelector("[role=alert]").textContent = "";
    dialog.showModal();
  }

  // Going on, looking from another side, standing still.

  function pause() {
    page.isPaused = !page.isPaused;
    if (!page.isPaused && page.latest) take(page.latest);
    draw();
  }

  function look(seat) {
    page.perspective = seat;
    draw();
  }

  let order = [];
  try {
    const list = JSON.parse(sessionStorage.getItem("lobby.order") ?? "[]");
    if (Array.isArray(list)) order = list;
  } catch {
    // Somebody else's: as if there were none.
  }

  // Who comes from elsewhere than the lobby goes through its tables as it shows them at first.
  function lookAround() {
    if (order.length) return () => {};
    const stop = stream("/api/lobby/events", (message) => {
      stop();
      const tables = new LiveTables();
      tables.apply(message);
      order = tables.look(NO_FILTER).tables.map((table) => table.id);
      sessionStorage.setItem("lobby.order", JSON.stringify(order));
      draw();
    });
    return stop;
  }

  function neighbour(step) {
    const others = order.filter((one) => one !== id);
    if (!others.length) return null;
    const at = order.indexOf(id);
    if (at < 0) return step > 0 ? others[0] : others.at(-1);
    return order[(at + step + order.length) % order.length];
  }

  function go(step) {
    const other = neighbour(step);
    if (other) app.navigate(`/tables/${encodeURIComponent(other)}`);
    else app.say(t("table.no_neighbour"));
  }

  // Drawing, at most once a frame.

  let frame = 0;

  function draw() {
    if (!frame) frame = requestAnimationFrame(drawNow);
  }

  function drawNow() {
    frame = 0;
    render(whole(), root);
  }

  function whole() {
    const { drawn, problem } = page;
    if (problem) {
      return html`<section class="empty">
        <h1>${t(problem.reason === "TABLE_ARCHIVED" ? "table.archived" : "table.unknown")}</h1>
        <p>${said(problem)}</p>
        <p><a class="button" href="/">${t("table.back")}</a></p>
      </section>`;
    }
    const state = drawn?.state;
    return html`<div class="table-page" data-revealed=${drawn?.revealed ?? 0}>
      ${header(state)}
      ${toolbar(state)}
      ${notices(state)}
      <div class="table-main">
        <div class="table-picture">
          ${page.isPaused ? behindMark() : nothing}
          ${drawn ? picture(drawn) : html`<p class="empty" role="status">${t("table.waits")}</p>`}
          ${result(state)}
        </div>
        ${said(state)}
      </div>
      ${isOperator ? revealDialog() : nothing}
    </div>`;
  }

  function header(state) {
    const labels = Object.entries(about.labels);
    const phase = state?.phase ?? about.phase;
    const fact = (name, value) => html`<div><dt>${t(`table.${name}`)}</dt><dd>${value}</dd></div>`;
    return html`<header class="table-head">
      <h1>${rulesName}</h1>
      <span class=${phase === "closed" ? "badge bad" : "badge good"} data-phase=${phase}>${t(`table.phase.${phase}`)}</span>
      ${page.reveal ? html`<span class="badge warn">${t("table.revealed", { hand: page.reveal.hand_number })}</span>` : nothing}
      <dl class="table-facts">
        ${state?.hand_number ? fact("hand", state.hands ? `${state.hand_number} / ${state.hands}` : state.hand_number) : nothing}
        ${about.pool_id ? fact("pool", about.pool_id) : nothing}
        ${state?.stakes.map((stake) => fact("stake", t("table.stake.unit", { amount: money.sum(stake.per_unit, stake, ruleSet) })))}
        ${labels.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
        ${about.endpoint ? fact("owner", html`<span class="mono">${about.endpoint}</span>`) : nothing}
        ${fact("id", html`<span class="mono" title=${id}>…${shortTable(id)}</span>`)}
      </dl>
    </header>`;
  }

  function toolbar(state) {
    const last = state ? (state.ended ? state.hand_number : state.hand_number - 1) : 0;
    const key = (name) => html` <kbd aria-hidden="true">${name}</kbd>`;
    return html`<div class="toolbar table-tools" role="toolbar" aria-label=${t("table.tools")}>
      <button class="button" ?disabled=${!neighbour(-1)} @click=${() => go(-1)}>← ${t("table.previous")}${key("p")}</button>
      <button class="button" ?disabled=${!neighbour(1)} @click=${() => go(1)}>${t("table.next")} →${key("n")}</button>
      <button class="button" aria-pressed=${page.isPaused} @click=${pause}>${t(page.isPaused ? "table.resume" : "table.pause")}${key("␣")}</button>
      <span class="table-sides" role="group" aria-label=${t("table.perspective")}>${[0, 1, 2, 3].map(
        (seat) => html`<button class="button" aria-pressed=${page.perspective === seat} @click=${() => look(seat)}
          title=${t("table.look", { name: state ? nameOf(state, seat) : seat + 1 })}
          aria-label=${t("table.look", { name: state ? nameOf(state, seat) : seat + 1 })}>${seat + 1}</button>`,
      )}</span>
      ${
        isOperator
          ? html`<button class="button" aria-pressed=${page.reveal !== null} ?disabled=${state?.phase === "closed"}
              @click=${toggleReveal}>${t(page.reveal ? "table.hide" : "table.reveal")}${key("r")}</button>`
          : nothing
      }
      ${isOperator && state ? tableMenu(app, { tableId: id, phase: state.phase, players: seated(state) }) : nothing}
      ${last > 0 ? html`<a class="button" href=${`/replay/${encodeURIComponent(id)}/${last}`}>${t("table.replay", { hand: last })}</a>` : nothing}
    </div>`;
  }

  const seated = (state) =>
    state.seats
      .map((seat, number) => ({ player_id: seat.player_id, name: nameOf(state, number) }))
      .filter((seat) => seat.player_id);

  function notices(state) {
    const { latest } = page;
    const broken = latest?.stream.status === "broken";
    return html`<div class="table-notices" role="status">
      ${broken ? html`<p class="notice bad" data-stream="broken" title=${latest.stream.problem?.message ?? nothing}>${t("table.broken")}</p>` : nothing}
      ${
        page.revealOver && isOperator
          ? html`<p class="notice warn" data-reveal-over=${page.revealOver}>${t("table.reveal.over", { hand: page.revealOver })}
              <button class="button" @click=${ask}>${t("table.reveal.next")}</button></p>`
          : nothing
      }
      ${state?.vote ? html`<p class="notice warn">${t("table.vote", { name: nameOf(state, state.vote.seat), agreed: state.vote.agreed.map((seat) => nameOf(state, seat)).join(", ") })}</p>` : nothing}
      ${state?.ready_check ? html`<p class="notice">${t("table.ready_check")}</p>` : nothing}
      ${state?.closed ? html`<p class="notice">${t("table.closed", { why: reasonOf(state.closed.reason) })}</p>` : nothing}
    </div>`;
  }

  function behindMark() {
    const { latest, drawn } = page;
    const behind = latest && drawn ? latest.state.number - drawn.state.number : 0;
    return html`<p class="notice warn paused" role="status" data-behind=${behind}>${t("table.paused", { behind })}</p>`;
  }

  function picture(drawn) {
    const { state } = drawn;
    return drawTable(state, {
      perspective: page.perspective,
      narrow: page.isNarrow,
      version: drawn.version,
      call: lastCall(),
      ruleSet,
      ask: (seat) => asked(state, seat),
    });
  }

  function lastCall() {
    for (let at = page.log.length - 1; at >= 0; at -= 1) {
      const entry = page.log[at];
      if (AFTER_A_CALL.has(entry.kind)) continue;
      return entry.call;
    }
    return null;
  }

  // What a seat is asked, where all is revealed.
  function asked(state, seat) {
    const prompt = state.prompts.find((one) => one.seat === seat);
    if (!prompt) return nothing;
    return html`<span class="plate-asked" data-asked=${prompt.kind}>${[...new Set(prompt.actions.map(actionName))].map(
      (name) => html`<span class="badge accent">${name}</span>`,
    )}</span>`;
  }

  function actionName(action) {
    if (action.kind === "kong" && action.meld) return meldName(action.meld);
    return has(`table.action.${action.kind}`) ? t(`table.action.${action.kind}`) : action.kind;
  }

  function result(state) {
    const ended = state?.ended ? state : page.result;
    if (!ended) return nothing;
    const isNow = Boolean(state?.ended);
    if (isNow && page.isResultHidden) {
      return html`<p class="result-folded"><button class="button" @click=${showResult}>${t("table.result.show")}</button></p>`;
    }
    return html`<section class=${isNow ? "panel result-panel over" : "panel result-panel"} aria-label=${t("table.result")}>
      ${
        isNow
          ? html`<button class="button quiet result-close" aria-label=${t("table.result.hide")} @click=${hideResult}>×</button>`
          : html`<h2 class="muted">${t("table.result.before", { hand: ended.hand_number })}</h2>`
      }
      ${resultWords(ended, ruleSet, money)}
    </section>`;
  }

  function showResult() {
    page.isResultHidden = false;
    draw();
  }

  function hideResult() {
    page.isResultHidden = true;
    draw();
  }

  function said(state) {
    const lines = page.log.filter((entry) => entry.text).slice(-SHOWN).reverse();
    return html`<aside class="panel table-log" tabindex="0" aria-label=${t("table.log")}>
      <h2>${t("table.log")}</h2>
      <ol>${lines.map((entry) => html`<li data-event=${entry.number} class=${entry.kind}><time>${time(entry.ms)}</time> ${entry.text}</li>`)}</ol>
      ${state?.closed ? ranking(state) : nothing}
    </aside>`;
  }

  function ranking(state) {
    return html`<h2>${t("table.ranking")}</h2>
      <ol class="table-ranking">${state.closed.ranking.map(
        (rank) => html`<li value=${rank.place}>${nameOf(state, rank.seat)} <span class="muted">${number(rank.standing)}</span></li>`,
      )}</ol>`;
  }

  function revealDialog() {
    const over = page.latest?.state.ended || !page.latest?.state.hand_number;
    const hand = (page.latest?.state.hand_number ?? 0) + (over ? 1 : 0);
    return html`<dialog id="reveal" class="dialog" aria-labelledby="reveal-title">
      <form @submit=${sent}>
        <h2 id="reveal-title">${t("table.reveal.title", { hand })}</h2>
        <p>${t("table.reveal.about")}</p>
        <label class="field">${t("table.reveal.reason")}<input name="reason" required maxlength="500" autocomplete="off"></label>
        <label class="field">${t("table.reveal.case")}<input name="case_id" maxlength="128" autocomplete="off"></label>
        <p class="error" role="alert"></p>
        <div class="toolbar">
          <button class="button primary" type="submit">${t("table.reveal")}</button>
          <button class="button" type="button" @click=${(event) => event.target.closest("dialog").close()}>${t("table.cancel")}</button>
        </div>
      </form>
    </dialog>`;
  }

  // Beginning and end.

  app.keys([
    { key: "n", label: t("table.next"), run: () => go(1) },
    { key: "p", label: t("table.previous"), run: () => go(-1) },
    { key: " ", label: t("table.pause"), run: pause },
    ...[0, 1, 2, 3].map((seat) => ({
      key: String(seat + 1),
      label: t("table.look.seat", { seat: seat + 1 }),
      run: () => look(seat),
    })),
    ...(isOperator ? [{ key: "r", label: t("table.reveal"), run: toggleReveal }] : []),
  ]);

  const sizes = new ResizeObserver(() => {
    const isNarrow = root.clientWidth < NARROW_PIXELS;
    if (isNarrow !== page.isNarrow) {
      page.isNarrow = isNarrow;
      draw();
    }
  });
  sizes.observe(root);
  const stopRing = runRing(root, () =>
    page.drawn && !page.isPaused ? { state: page.drawn.state, skewMs: page.skewMs } : null,
  );
  if (isOperator) page.reveal = JSON.parse(sessionStorage.getItem(kept) ?? "null");
  drawNow();
  follow();
  const stopLooking = lookAround();
  return () => {
    isOpen = false;
    close();
    stopLooking();
    stopRing();
    sizes.disconnect();
    cancelAnimationFrame(frame);
  };
}
