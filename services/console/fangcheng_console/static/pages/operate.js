// What operators do that belongs to no other page: pools, players, and acts whose outcome is not known.

import { problemText, sentence, sumText, targetText, verbName } from "../acts.js";
import { get, post } from "../api.js";
import { act } from "../dialog.js";
import { number, time } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { settlementPath } from "../routes.js";

export const css = "operate";

const EVERY_MS = 5_000;

export function open(root, params, app) {
  const { t } = app;
  const state = { pools: null, acts: [], currencies: [], problem: null, player: null, unknown: null, told: "" };
  let timer;
  let isOpen = true;
  let reading = 0; // the newest asking; an answer to an older one is not shown
  let looking = 0;
  app.title(t("operate.title"));

  async function read() {
    clearTimeout(timer);
    if (document.hidden) return; // it is read again when the tab is seen
    const number = ++reading;
    let told;
    try {
      const [{ pools }, log] = await Promise.all([get("/api/operate/pools"), get("/api/log?status=unknown&but=reveal")]);
      told = { pools, acts: log.stories, currencies: log.currencies, problem: null };
    } catch (problem) {
      told = { problem };
    }
    if (!isOpen || number !== reading) return;
    Object.assign(state, told);
    draw();
    timer = setTimeout(read, EVERY_MS);
  }

  async function lookUp(playerId) {
    const number = ++looking;
    history.replaceState(history.state, "", `?player=${encodeURIComponent(playerId)}`);
    let told;
    try {
      told = { player: await get(`/api/operate/players/${encodeURIComponent(playerId)}`), unknown: null };
    } catch (problem) {
      told = { player: null, unknown: problem };
    }
    if (!isOpen || number !== looking) return;
    Object.assign(state, told);
    draw();
  }

  // What an act has changed is seen at once.
  async function does(verb, target) {
    await act(app, { verb, target });
    if (!isOpen) return;
    await Promise.all([read(), state.player && lookUp(state.player.player_id)]);
  }

  async function again(story) {
    try {
      await post("/api/operate/repeat", { request_id: story.request_id });
      state.told = t("operate.open.found", { verb: verbName(story.verb) });
    } catch (problem) {
      state.told = problemText(problem);
    }
    if (isOpen) await read();
  }

  const button = (words, verb, target, kind = "button") =>
    html`<button type="button" class=${kind} aria-label="${t(words)} ${target.player_id ?? target}" @click=${() => does(verb, target)}>${t(words)}</button>`;

  function unknownActs() {
    if (!state.acts.length && !state.told) return nothing;
    return html`<section class="panel operate-open" aria-labelledby="operate-open">
      <h2 id="operate-open">${t("operate.open")}</h2>
      <p class="muted">${t("operate.open.lead")}</p>
      <p role="status">${state.told}</p>
      <ul class="operate-list">
        ${state.acts.map(
          (story) => html`<li>
            <span><strong>${verbName(story.verb)}</strong> ${targetText(story.target)}
              <span class="muted">${time(story.ms, { date: true })}, ${story.person}: ${story.reason}</span></span>
            <button type="button" class="button" @click=${() => again(story)}>${t("operate.open.again")}</button>
          </li>`,
        )}
      </ul>
    </section>`;
  }

  function pools() {
    if (state.pools === null) return nothing;
    if (!state.pools.length) return html`<p class="empty">${t("operate.pools.none")}</p>`;
    return html`<ul class="operate-pools">${state.pools.map(pool)}</ul>`;
  }

  function pool(one) {
    const kind = one.closed ? "closed" : one.paused ? "paused" : "on";
    const badge = { on: "badge good", paused: "badge warn", closed: "badge bad" }[kind];
    return html`<li data-pool=${one.pool_id} data-state=${kind}>
      <div class="operate-name">
        <h3>${one.pool_id}</h3>
        <span class="muted">${one.name} · ${one.rules}</span>
      </div>
      <span>${t("operate.waiting", { count: number(one.waiting) })}</span>
      <div class="operate-state"><span class=${badge}>${t(`operate.pool.${kind}`)}</span>
        ${one.pause ? html`<span class="muted">${t("operate.pool.by", one.pause)}</span>` : nothing}</div>
      <div class="operate-buttons">
        ${one.paused ? button("operate.resume", "resume_pool", one.pool_id) : button("operate.pause", "pause_pool", one.pool_id)}
        ${one.closed ? nothing : button("operate.close", "close_pool", one.pool_id, "button danger")}
      </div>
    </li>`;
  }

  function asked(event, then) {
    event.preventDefault();
    const value = event.target.elements[0].value.trim();
    if (value) then(value);
  }

  function player() {
    const { player: one, unknown } = state;
    if (unknown) return html`<p class="error" role="alert">${problemText(unknown)}</p>`;
    if (!one) return nothing;
    const { wallet } = one;
    const id = encodeURIComponent(one.player_id);
    return html`<div class="operate-player" data-player=${one.player_id}>
      <h3>${one.player_id}
        ${wallet?.is_bot ? html`<span class="badge">${t("operate.player.bot")}</span>` : nothing}
        ${
          wallet
            ? html`<span class=${wallet.frozen ? "badge bad" : "badge good"}>${t(
                wallet.frozen ? "operate.player.frozen" : "operate.player.free",
              )}</span>`
            : nothing
        }</h3>
      ${one.warnings.map((said) => html`<p class="warn">${sentence(said, state.currencies)}</p>`)}
      <ul>
        ${(one.where ?? []).map((said) => html`<li>${sentence(said, state.currencies)}</li>`)}
        ${wallet?.frozen ? html`<li>${sentence({ key: "is_frozen", params: wallet }, state.currencies)}</li>` : nothing}
      </ul>
      ${(wallet?.owed ?? []).map((sum) => debt(one.player_id, sum))}
      <div class="toolbar">
        ${
          wallet
            ? wallet.frozen
              ? button("operate.player.unfreeze", "unfreeze_player", one.player_id)
              : button("operate.player.freeze", "freeze_player", one.player_id, "button danger")
            : nothing
        }
        ${
          one.table_id
            ? button("operate.player.remove", "remove_player", { table_id: one.table_id, player_id: one.player_id }, "button danger")
            : nothing
        }
        ${one.table_id ? html`<a class="button" href="/tables/${encodeURIComponent(one.table_id)}">${t("operate.player.table")}</a>` : nothing}
        ${wallet ? html`<a class="button" href="/wallet/${id}">${t("operate.player.wallet")}</a>` : nothing}
        <a class="button" href="/log?target=${id}">${t("operate.player.log")}</a>
      </div>
      ${pairs(one)}
    </div>`;
  }

  function debt(playerId, owed) {
    const target = { player_id: playerId, ...owed };
    return html`<p class="operate-debt">
      <span>${sentence({ key: "owes", params: { player: playerId, money: [owed] } }, state.currencies)}</span>
      <button type="button" class="button" aria-label="${t("operate.player.collect")}: ${sumText(owed, state.currencies)}"
        @click=${() => does("collect_receivable", target)}>${t("operate.player.collect")}</button>
      <button type="button" class="button danger" aria-label="${t("operate.player.write_off")}: ${sumText(owed, state.currencies)}"
        @click=${() => does("write_off_receivable", target)}>${t("operate.player.write_off")}</button>
    </p>`;
  }

  function pairs(one) {
    return html`<h3>${t("operate.player.pairs")}</h3>
      ${
        one.pairs.length
          ? html`<ul class="operate-list">
              ${one.pairs.map(
                (pair) => html`<li>
                  <span><strong>${pair.other_id}</strong>
                    <span class="muted">${t("operate.player.since", { time: time(pair.ms, { date: true }) })}: ${pair.reason}</span></span>
                  <button type="button" class="button" aria-label="${t("operate.player.unbar")} ${pair.other_id}"
                    @click=${() => does("unbar_pair", { player_id: one.player_id, other_id: pair.other_id })}>${t("operate.player.unbar")}</button>
                </li>`,
              )}
            </ul>`
          : html`<p class="muted">${t("operate.player.pairs.none")}</p>`
      }
      <form class="operate-form" @submit=${(event) =>
        asked(event, (other) => does("bar_pair", { player_id: one.player_id, other_id: other }))}>
        ${field("other", t("operate.player.other"))}
        <button class="button">${t("operate.player.bar")}</button>
      </form>`;
  }

  // A button for what the field of its form names.
  const named = (words, verb) =>
    html`<button type="button" class="button danger" @click=${(event) => {
      const [input] = event.target.form.elements;
      if (input.value.trim()) does(verb, input.value.trim());
      else input.focus();
    }}>${t(words)}</button>`;

  const field = (name, label, value = "") => html`<div class="field">
    <label for="operate-${name}">${label}</label>
    <input id="operate-${name}" name=${name} value=${value} maxlength="128" autocomplete="off" spellcheck="false">
  </div>`;

  function draw() {
    const asks = new URLSearchParams(location.search).get("player") ?? "";
    render(
      html`<h1>${t("operate.title")}</h1>
        ${state.problem ? html`<p class="error" role="alert">${problemText(state.problem)}</p>` : nothing}
        ${unknownActs()}
        <div class="operate">
          <section class="panel" aria-labelledby="operate-pools">
            <h2 id="operate-pools">${t("operate.pools")}</h2>
            ${pools()}
          </section>
          <div class="operate-side">
            <section class="panel" aria-labelledby="operate-player">
              <h2 id="operate-player">${t("operate.player")}</h2>
              <p class="muted">${t("operate.player.lead")}</p>
              <form class="operate-form" @submit=${(event) => asked(event, lookUp)}>
                ${field("find", t("operate.player.id"), asks)}
                <button class="button primary">${t("operate.player.find")}</button>
              </form>
              <div aria-live="polite">${player()}</div>
            </section>
            <section class="panel" aria-labelledby="operate-elsewhere">
              <h2 id="operate-elsewhere">${t("operate.elsewhere")}</h2>
              <form @submit=${(event) => asked(event, (id) => app.navigate(`/tables/${encodeURIComponent(id)}`))}>
                ${field("table", t("operate.table.id"))}
                <div class="toolbar">
                  <button class="button">${t("operate.go")}</button>
                  ${named("operate.table.void", "void_hand")} ${named("operate.table.after", "close_table_after_hand")}
                  ${named("operate.table.close", "close_table")}
                </div>
              </form>
              <form @submit=${(event) =>
                asked(event, (key) => app.navigate(settlementPath(key)))}>
                ${field("settlement", t("operate.settlement.key"))}
                <div class="toolbar">
                  <button class="button">${t("operate.go")}</button>
                  ${named("operate.settlement.reverse", "reverse_settlement")}
                </div>
              </form>
            </section>
          </div>
        </div>`,
      root,
    );
  }

  draw();
  read();
  const asks = new URLSearchParams(location.search).get("player");
  if (asks) lookUp(asks);
  document.addEventListener("visibilitychange", read);
  return () => {
    isOpen = false;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", read);
  };
}
