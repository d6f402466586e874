// Try a hand: tiles put together, and what the evaluator says of them while they are.

import { html, nothing, render } from "../lit.js";
import { get, post } from "../api.js";
import { builder } from "./try.builder.js";
import { answer } from "./try.answer.js";
import { EXAMPLES } from "./try.examples.js";
import * as held from "./try.state.js";

export const css = "try";

const PAUSE_MS = 120; // of typing, before the evaluator is asked

export async function open(root, params, app) {
  const { t } = app;
  app.title(t("try.title"));
  const page = {
    app,
    t,
    ruleSets: [],
    ruleSet: null,
    state: held.emptyState(),
    picking: "", // what the next tile of the palette is for, beside the hand: a kind of meld, "treasure", "first"
    problems: {}, // by field, as the evaluator or the reader of tiles said
    failure: null, // a problem of no field that is on the page
    lost: [],
    shared: "", // what became of the link that was to be copied
    found: null, // {for: query, mode, analysis | score}
    change,
    pick,
    load,
  };
  let asked = 0; // the newest question; what answers an older one is not shown
  let timer = 0;
  let closed = false;

  const query = () => held.toQuery(page.state);

  function change(patch) {
    page.state = { ...page.state, ...patch };
    page.lost = [];
    follow();
  }

  function pick(what) {
    page.picking = page.picking === what ? "" : what;
    draw();
  }

  function load(text) {
    const { state, lost } = held.fromQuery(text);
    page.state = state;
    page.lost = lost;
    page.picking = "";
    if (!state.rules) state.rules = page.ruleSets[0]?.id ?? "";
    follow();
  }

  const canAsk = () => !held.missing(page.state) && !Object.keys(page.problems).length;

  /** After every change the picture, and in a moment the address and the question. */
  function follow() {
    const { rules, revision } = page.state;
    page.ruleSet = page.ruleSets.find((one) => one.id === rules && (!revision || one.revision === revision)) ?? null;
    page.problems = held.unreadable(page.state);
    page.failure = null;
    page.shared = "";
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(rested, PAUSE_MS, asked);
    if (!canAsk()) page.found = null;
    draw();
  }

  /** Nothing has changed for a while. (Browsers let nobody write the address at every key.) */
  function rested(number) {
    history.replaceState(history.state, "", `/try?${query()}`);
    if (canAsk()) ask(number);
  }

  async function ask(number) {
    const { state, ruleSet } = page;
    const mode = state.mode;
    const isScore = mode === "score";
    const body = isScore ? held.scoreRequest(state, ruleSet) : held.analyzeRequest(state, ruleSet);
    let found = null;
    let problem = null;
    try {
      found = await post(`/api/try/${mode}`, body);
    } catch (error) {
      problem = error;
    }
    if (closed || number !== asked) return;
    page.found = found && { for: held.toQuery(state), mode, ...found };
    if (problem) place(problem);
    draw();
  }

  /** Show what was refused at the field that it is of, else above the answer. */
  function place(problem) {
    const field = problem.field === "hand" ? "hand.concealed" : (problem.field ?? "");
    const shown = [...root.querySelectorAll("[data-field]")].map((one) => one.dataset.field);
    const fits = shown.filter((one) => field === one || field.startsWith(`${one}.`) || field.startsWith(`${one}[`));
    const best = fits.sort((a, b) => b.length - a.length)[0];
    if (best) page.problems = { [best]: problem };
    else page.failure = problem;
  }

  function random() {
    const wall = Object.entries(page.ruleSet?.tiles ?? {}).flatMap(([tile, copies]) =>
      Number(tile) < 50 ? Array(copies).fill(Number(tile)) : [],
    );
    const count = held.size(page.state.seats[page.state.seat]) === 14 ? 14 : 13;
    const hand = [];
    while (hand.length < count && wall.length) {
      hand.push(...wall.splice(Math.floor(Math.random() * wall.length), 1));
    }
    const seat = { ...held.emptySeat(), hand: held.textOf(hand) };
    change({ mode: "analyze", seats: page.state.seats.map((old, at) => (at === page.state.seat ? seat : old)) });
  }

  function clear() {
    const { rules, revision, options, mode } = page.state;
    page.picking = "";
    change({ ...held.emptyState(), rules, revision, options, mode });
  }

  async function share() {
    try {
      await navigator.clipboard.writeText(new URL(`/try?${query()}`, location.href).href);
      page.shared = "try.copied";
    } catch {
      page.shared = "try.not_copied"; // no clipboard without TLS, or it is not allowed
    }
    app.say(t(page.shared));
    draw();
  }

  function example(event) {
    const chosen = event.target.value;
    event.target.value = "";
    if (chosen) load(chosen);
  }

  function draw() {
    if (closed) return;
    const examples = EXAMPLES[page.state.rules] ?? [];
    render(
      html`<div class="try">
        <header class="toolbar">
          <h1>${t("try.title")}</h1>
          ${examples.length
            ? html`<select aria-label=${t("try.examples")} @change=${example}>
                <option value="">${t("try.examples")}</option>
                ${examples.map((one) => html`<option value=${one.query}>${one[app.lang] ?? one.en}</option>`)}
              </select>`
            : nothing}
          <button class="button" data-do="random" @click=${random}>${t("try.random")}</button>
          <button class="button" data-do="clear" @click=${clear}>${t("try.clear")}</button>
          <button class="button" data-do="share" @click=${share}>${t(page.shared || "try.share")}</button>
        </header>
        ${page.lost.length
          ? html`<p class="error" role="alert">${t("try.lost", { keys: page.lost.join(", ") })}</p>`
          : nothing}
        <div class="try-columns">
          <div class="try-build">${builder(page)}</div>
          <section class="try-answer panel" aria-live="polite" aria-label=${t("try.answer")}>${answer(page)}</section>
        </div>
      </div>`,
      root,
    );
  }

  page.ruleSets = (await get("/api/rule-sets")).rule_sets;
  load(location.search.slice(1));

  return function close() {
    closed = true;
    clearTimeout(timer);
    render(nothing, root);
  };
}
