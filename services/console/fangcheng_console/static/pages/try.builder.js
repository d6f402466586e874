// What a hand is put together with: the rule set and its options, tiles, melds, and for a finished
// hand how it ended.

import { has } from "../i18n.js";
import { html, live, nothing } from "../lit.js";
import { meaningOf } from "../meanings.js";
import { tileName, tileRow } from "../tiles.js";
import * as held from "./try.state.js";

const SEATS = [0, 1, 2, 3];
const FIRST_FLOWER = 51;

export function builder(page) {
  const { state, ruleSet } = page;
  const isScore = state.mode === "score";
  return html`
    ${rules(page)}
    <div class="tabs" role="group" aria-label=${page.t("try.mode")}>
      ${["analyze", "score"].map(
        (mode) => html`<button class="button" aria-pressed=${state.mode === mode} data-mode=${mode}
          @click=${() => turnTo(page, mode)}>${page.t(`try.mode.${mode}`)}</button>`,
      )}
    </div>
    ${isScore ? end(page) : nothing}
    ${isScore ? seatTabs(page) : nothing}
    <section class="panel try-hand">${hand(page)}</section>
    ${ruleSet ? html`<section class="panel" aria-label=${page.t("try.palette")}>${palette(page)}</section>` : nothing}
  `;
}

/** Between the two modes: the last of fourteen tiles is the one that a finished hand was won on. */
function turnTo(page, mode) {
  const { state } = page;
  page.picking = "";
  const seat = state.seats[state.seat];
  if (mode === "score" && !state.win && held.size(seat) === 14) {
    const win = held.concealed(seat).at(-1);
    const short = held.withoutTiles(seat, [win]);
    page.change({ mode, win, winners: [state.seat], seats: put(state, state.seat, short) });
  } else {
    page.change({ mode });
  }
}

const put = (state, number, seat) => state.seats.map((old, at) => (at === number ? seat : old));

function problem(page, field) {
  const found = page.problems[field];
  if (!found) return nothing;
  return html`<p class="error" role="alert" data-error=${field}>${found.told ? found.told(page.app.lang) : explained(page, found)}</p>`;
}

/** What the evaluator refused, in the language of the page as far as its reason says it. */
export function explained({ t }, refused) {
  const key = `try.problem.${refused.reason}`;
  return has(key) ? html`<strong>${t(key)}</strong> <span lang="en">${refused.message}</span>` : refused.message;
}

// ---- The rule set and its options ----

function rules(page) {
  const { state, ruleSet, ruleSets, t, app } = page;
  const name = (one) => (app.lang === "zh" ? one.name_zh : one.name_en);
  const changed = Object.keys(state.options).length;
  return html`<section class="panel try-rules">
    <label class="try-label">${t("try.rules")}
      <select data-field="rules.id" .value=${live(state.rules)}
        @change=${(event) => page.change({ rules: event.target.value, revision: 0, options: {} })}>
        ${ruleSets.filter((one) => one.newest).map(
          (one) => html`<option value=${one.id} .selected=${one.id === state.rules}>${name(one)}</option>`,
        )}
        ${ruleSet ? nothing : html`<option value=${state.rules} selected>${state.rules}</option>`}
      </select>
    </label>
    ${problem(page, "rules.id")}
    ${ruleSet?.options.length
      ? html`<details class="try-options" ?open=${changed > 0}>
          <summary>${t("try.options")}${changed ? html` <span class="badge">${t("try.changed", { count: changed })}</span>` : nothing}</summary>
          <div class="try-fields">${ruleSet.options.map((spec) => option(page, spec))}</div>
        </details>`
      : nothing}
  </section>`;
}

const told = (meaning) => html`<small class="muted" lang=${meaning.lang}>${meaning.text}</small>`;

function option(page, spec) {
  const { state, app } = page;
  const field = `rules.options.${spec.id}`;
  const value = state.options[spec.id] ?? spec.default;
  const set = (given) => {
    const options = { ...state.options, [spec.id]: given };
    if (given === spec.default) delete options[spec.id];
    page.change({ options });
  };
  const label = app.lang === "zh" ? spec.name_zh : spec.id.replaceAll("_", " ");
  let control;
  if (spec.type === "bool") {
    control = html`<input type="checkbox" data-field=${field} .checked=${live(value === true)}
      @change=${(event) => set(event.target.checked)} />`;
  } else if (spec.type === "integer") {
    control = html`<input type="number" step="1" min=${spec.minimum} max=${spec.maximum}
      data-field=${field} .value=${live(String(value))}
      @change=${(event) => set(event.target.value === "" ? spec.default : Math.trunc(event.target.valueAsNumber))} />`;
  } else {
    control = html`<select data-field=${field} @change=${(event) => set(event.target.value)}>
      ${spec.choices.map((choice) => html`<option value=${choice} .selected=${choice === value}>${choice}</option>`)}
    </select>`;
  }
  return html`<div class="try-option">
    <label class=${spec.type === "bool" ? "try-check" : "try-label"}>${spec.type === "bool" ? [control, " ", label] : [label, control]}</label>
    ${told(meaningOf(state.rules, spec, app.lang))}
    ${problem(page, field)}
  </div>`;
}

// ---- How a finished hand ended ----

function choice(page, key, label, options, { field = "", as = (value) => value, value = page.state[key] } = {}) {
  return html`<label class="try-label">${label}
    <select data-key=${key} data-field=${field || nothing}
      @change=${(event) => page.change({ [key]: as(event.target.value) })}>
      ${options.map(([one, text]) => html`<option value=${one ?? ""} .selected=${one === value}>${text}</option>`)}
    </select>${field ? problem(page, field) : nothing}
  </label>`;
}

function check(page, key, label, field) {
  return html`<label class="try-check"><input type="checkbox" data-key=${key} data-field=${field}
    .checked=${live(page.state[key])} @change=${(event) => page.change({ [key]: event.target.checked })} /> ${label}
    ${problem(page, field)}</label>`;
}

function several(page, key, label, seats, field) {
  const chosen = page.state[key];
  const flip = (seat) => {
    const kept = chosen.includes(seat) ? chosen.filter((one) => one !== seat) : [...chosen, seat];
    page.change({ [key]: kept.sort() });
  };
  return html`<fieldset class="try-several" data-field=${field}><legend>${label}</legend>
    ${seats.map(
      (seat) => html`<button class="button" type="button" aria-pressed=${chosen.includes(seat)} data-key=${key}
        data-seat-choice=${seat} @click=${() => flip(seat)}>${seat}</button>`,
    )}${problem(page, field)}</fieldset>`;
}

function end(page) {
  const { state, ruleSet, t } = page;
  const seat = (number) => [number, t("try.seat", { seat: number })];
  const number = (value) => (value === "" ? null : Number(value));
  const losers = SEATS.filter((one) => !state.winners.includes(one)).map(seat);
  const ends = held.ENDS.filter((one) => one !== "eight_flowers" || ruleSet?.flowers_win || state.end === one);
  const isWin = state.end === "win";
  const isDrawn = state.by === "self_draw";
  return html`<section class="panel try-end">
    <h2>${t("try.end.title")}</h2>
    <div class="try-fields">
      ${choice(page, "end", t("try.end"), ends.map((one) => [one, t(`try.end.${one}`)]))}
      ${choice(page, "dealer", t("try.dealer"), SEATS.map(seat), { as: Number, field: "hand.dealer" })}
      ${isWin ? several(page, "winners", t("try.winners"), SEATS, "hand.win.winners") : nothing}
      ${isWin
        ? choice(page, "by", t("try.by"), held.BYS.map((one) => [one, t(`try.by.${one}`)]), { field: "hand.win.by" })
        : nothing}
      ${isWin && !isDrawn
        ? choice(page, "from", t(`try.from.${state.by}`), [[null, "–"], ...losers], { as: number, field: "hand.win.from_seat" })
        : nothing}
      ${state.end === "escape" || state.end === "eight_flowers"
        ? choice(page, "leaver", t(`try.leaver.${state.end}`), SEATS.map(seat), { as: Number, field: `hand.${state.end}.seat` })
        : nothing}
      ${isWin ? slot(page, "win", t("try.win"), "hand.win.tile") : nothing}
    </div>
    <details class="try-more" ?open=${hasMore(state)}>
      <summary>${t("try.more")}</summary>
      <div class="try-fields">
        ${isWin && isDrawn
          ? html`${choice(page, "afterKong", t("try.after_kong"), [["", t("try.none")], ...held.KONGS.map((one) => [one, t(`try.kong.${one}`)])], { field: "hand.win.after_kong" })}
            ${state.afterKong === "exposed"
              ? choice(page, "kongFrom", t("try.kong_from"), [[null, "–"], ...losers], { as: number, field: "hand.win.kong_from_seat" })
              : nothing}
            ${check(page, "after_flower", t("try.after_flower"), "hand.win.after_flower")}
            ${check(page, "on_deal", t("try.on_deal"), "hand.win.on_deal")}`
          : nothing}
        ${isWin && state.by === "discard" ? check(page, "discard_after_kong", t("try.discard_after_kong"), "hand.win.discard_after_kong") : nothing}
        ${isWin ? several(page, "firstRound", t("try.first_round"), state.winners.filter((one) => one !== state.dealer), "hand.win.first_round") : nothing}
        ${ruleSet?.treasure || state.treasure ? slot(page, "treasure", t("try.treasure"), "hand.treasure") : nothing}
        <label class="try-label">${t("try.drawn_before")}
          <input type="number" min="0" max="100000" step="1" data-key="drawnBefore" data-field="hand.drawn_hands_before"
            .value=${live(String(state.drawnBefore))}
            @change=${(event) => page.change({ drawnBefore: Math.max(0, Math.trunc(event.target.valueAsNumber || 0)) })} />
          ${problem(page, "hand.drawn_hands_before")}</label>
        <label class="try-label">${t("try.false_wins")}
          <input inputmode="numeric" data-key="falseWins" data-field="hand.false_wins" .value=${live(state.falseWins)}
            @change=${(event) => page.change({ falseWins: event.target.value.replace(/[^0-3]/g, "") })} />
          ${problem(page, "hand.false_wins")}</label>
      </div>
    </details>
  </section>`;
}

const hasMore = (state) =>
  Boolean(state.afterKong || state.after_flower || state.on_deal || state.discard_after_kong ||
    state.firstRound.length || state.treasure || state.drawnBefore || state.falseWins);

/** One tile that is chosen from the palette; a click on it takes it away. */
function slot(page, key, label, field) {
  const { state, t, app } = page;
  const tile = state[key];
  const isNext = page.picking === key || (key === "win" && !page.picking && goesToWin(page));
  return html`<div class="try-slot" data-field=${field}><span>${label}</span>
    ${tile
      ? html`<button class="try-tile" type="button" data-slot=${key} data-slot-tile=${tile}
          aria-label=${t("try.remove", { tile: tileName(tile, app.lang) })}
          @click=${() => page.change({ [key]: 0 })}>${tileRow([tile], { height: 52, lang: app.lang })}</button>`
      : html`<button class="try-empty" type="button" data-slot=${key} aria-pressed=${isNext}
          @click=${() => page.pick(key)}>${isNext ? t("try.pick_now") : t("try.pick")}</button>`}
    ${problem(page, field)}</div>`;
}

function seatTabs(page) {
  const { state, t } = page;
  return html`<div class="try-seats" role="group" aria-label=${t("try.seats")}>
    ${SEATS.map((number) => {
      const seat = state.seats[number];
      const isOpen = seat.melds.some((meld) => meld.kind !== "concealed_kong");
      const hasProblem = Object.keys(page.problems).some((field) => field.startsWith(`hand.seats[${number}]`)) ||
        (page.failure?.field ?? "").startsWith(`hand.seats[${number}]`);
      return html`<button class="button" type="button" aria-pressed=${state.seat === number} data-edit-seat=${number}
        @click=${() => page.change({ seat: number })}>
        <b>${t("try.seat", { seat: number })}</b>
        ${state.dealer === number ? html`<span class="badge">${t("try.is_dealer")}</span>` : nothing}
        ${state.end === "win" && state.winners.includes(number) ? html`<span class="badge good">${t("try.is_winner")}</span>` : nothing}
        ${hasProblem ? html`<span class="badge bad">!</span>` : nothing}
        <small class="muted">${t(isOpen ? "try.is_open" : "try.is_closed")} · ${t("try.tiles", { tiles: held.size(seat) })}</small>
      </button>`;
    })}
  </div>`;
}

// ---- The tiles of a seat ----

function hand(page) {
  const { state, ruleSet, t, app } = page;
  const number = state.seat;
  const seat = state.seats[number];
  const isScore = state.mode === "score";
  const codes = held.concealed(seat).map((code, at) => [code, at]).sort((a, b) => a[0] - b[0]);
  const tiles = held.size(seat);
  const field = (key) => held.fieldOf(state, number, key);
  const set = (patch) => page.change({ seats: put(state, number, { ...seat, ...patch }) });
  const hasFlowers = Object.keys(ruleSet?.tiles ?? {}).some((tile) => Number(tile) >= FIRST_FLOWER);
  return html`
    <label class="try-label try-typed">
      <span>${isScore ? t("try.hand_of", { seat: number }) : t("try.hand")}
        <span class="badge ${tiles === 13 || tiles === 14 ? "good" : ""}" data-size=${tiles}>${t("try.tiles", { tiles })}</span></span>
      <input class="mono" spellcheck="false" autocomplete="off" autocapitalize="off" data-key="hand" data-field=${field("hand")}
        placeholder="123m456p789s1122z" .value=${live(seat.hand)} maxlength="120"
        aria-invalid=${Boolean(page.problems[field("hand")])}
        @input=${(event) => set({ hand: event.target.value })} />
    </label>
    ${problem(page, field("hand"))}
    <div class="try-row" data-row="hand">
      ${codes.map(
        ([code]) => html`<button class="try-tile" type="button" data-hand-tile=${code}
          aria-label=${t("try.remove", { tile: tileName(code, app.lang) })}
          @click=${() => page.change({ seats: put(state, number, held.withoutTiles(seat, [code])) })}
          >${tileRow([code], { height: 52, lang: app.lang })}</button>`,
      )}
      ${codes.length ? nothing : html`<span class="muted">${t("try.no_tiles")}</span>`}
    </div>
    ${melds(page, seat, set, field("melds"))}
    ${hasFlowers || seat.flowers ? flowers(page, seat, set, field("flowers")) : nothing}
    ${isScore ? seatState(page, seat, set, field) : nothing}
  `;
}

function melds(page, seat, set, field) {
  const { state, ruleSet, t, app } = page;
  const isScore = state.mode === "score";
  const kinds = Object.values(held.MELDS).filter((kind) => kind !== "whirlwind" || ruleSet?.whirlwind);
  const change = (at, patch) => set({ melds: seat.melds.map((meld, place) => (place === at ? { ...meld, ...patch } : meld)) });
  return html`<div class="try-melds" data-field=${field}>
    <div class="try-meld-kinds" role="group" aria-label=${t("try.add_meld")}>
      <span class="muted">${t("try.add_meld")}</span>
      ${kinds.map(
        (kind) => html`<button class="button small" type="button" data-add-meld=${kind} aria-pressed=${page.picking === kind}
          ?disabled=${seat.melds.length >= 4} @click=${() => page.pick(kind)}>${t(`try.meld.${kind}`)}</button>`,
      )}
    </div>
    ${problem(page, field)}
    ${seat.melds.map(
      (meld, at) => html`<div class="try-meld" data-meld=${meld.kind} data-field=${`${field}[${at}]`}>
        <span>${t(`try.meld.${meld.kind}`)}</span>
        ${tileRow(meld.tiles, { height: 44, lang: app.lang })}
        ${meld.kind === "whirlwind"
          ? [45, 46, 47].map((code) => html`<button class="button small" type="button"
              @click=${() => change(at, { tiles: [...meld.tiles, code].sort() })}>+ ${tileName(code, app.lang)}</button>`)
          : nothing}
        ${isScore && !["concealed_kong", "whirlwind"].includes(meld.kind)
          ? html`<select aria-label=${t("try.meld_from")}
              @change=${(event) => change(at, { from: event.target.value === "" ? null : Number(event.target.value) })}>
              <option value="" .selected=${meld.from === null}>${t("try.meld_from_any")}</option>
              ${SEATS.filter((one) => one !== state.seat).map(
                (one) => html`<option value=${one} .selected=${meld.from === one}>${t("try.from_seat", { seat: one })}</option>`,
              )}</select>`
          : nothing}
        ${isScore && ruleSet?.treasure && meld.kind === "pong"
          ? html`<label class="try-check"><input type="checkbox" .checked=${live(meld.treasure)}
              @change=${(event) => change(at, { treasure: event.target.checked })} /> ${t("try.meld_treasure")}</label>`
          : nothing}
        <button class="button small" type="button" aria-label=${t("try.remove_meld")}
          @click=${() => set({ melds: seat.melds.filter((_, place) => place !== at) })}>×</button>
        ${problem(page, `${field}[${at}]`)}
      </div>`,
    )}
  </div>`;
}

function flowers(page, seat, set, field) {
  const { state, t, app } = page;
  const { codes } = held.parsed(seat.flowers);
  return html`<div class="try-row" data-row="flowers" data-field=${field}>
    <span class="muted">${t("try.flowers")}</span>
    ${codes.map(
      (code) => html`<button class="try-tile" type="button" data-flower-tile=${code}
        aria-label=${t("try.remove", { tile: tileName(code, app.lang) })}
        @click=${() => page.change({ seats: put(state, state.seat, held.withoutTiles(seat, [code], "flowers")) })}
        >${tileRow([code], { height: 40, lang: app.lang })}</button>`,
    )}
    ${codes.length ? nothing : html`<span class="muted">${t("try.none")}</span>`}
    ${problem(page, field)}
  </div>`;
}

function seatState(page, seat, set, field) {
  const { state, ruleSet, t, app } = page;
  const declarations = ruleSet?.declarations ?? [];
  const piao = ruleSet?.piao ?? [];
  const name = (one) => (app.lang === "zh" ? one.name_zh : one.name_en);
  return html`<div class="try-fields">
    ${declarations.length || seat.declared
      ? html`<label class="try-label">${t("try.declared")}
          <select data-key="declared" data-field=${field("declared")} @change=${(event) => set({ declared: event.target.value })}>
            <option value="">${t("try.none")}</option>
            ${declarations.map((one) => html`<option value=${one.id} .selected=${one.id === seat.declared}>${name(one)}</option>`)}
          </select>${problem(page, field("declared"))}</label>`
      : nothing}
    ${piao.length || seat.piao
      ? html`<label class="try-label">${t("try.piao")}
          <select data-key="piao" data-field=${field("piao")} @change=${(event) => set({ piao: Number(event.target.value) })}>
            ${[...new Set([...piao, seat.piao])].map((one) => html`<option value=${one} .selected=${one === seat.piao}>${one}</option>`)}
          </select>${problem(page, field("piao"))}</label>`
      : nothing}
    <div class="try-slot" data-field=${field("first")}><span>${t("try.first")}</span>
      ${seat.first
        ? html`<button class="try-tile" type="button" data-slot="first" aria-label=${t("try.remove", { tile: tileName(seat.first, app.lang) })}
            @click=${() => set({ first: 0 })}>${tileRow([seat.first], { height: 40, lang: app.lang })}</button>`
        : html`<button class="try-empty small" type="button" data-slot="first" aria-pressed=${page.picking === "first"}
            @click=${() => page.pick("first")}>${page.picking === "first" ? t("try.pick_now") : t("try.pick")}</button>`}
      ${problem(page, field("first"))}</div>
  </div>`;
}

// ---- The palette ----

/** Whether the next tile is the one that was won on: all thirteen of the winner are there. */
function goesToWin(page) {
  const { state } = page;
  return state.mode === "score" && state.end === "win" && !state.win &&
    state.winners.includes(state.seat) && held.size(state.seats[state.seat]) >= 13;
}

function palette(page) {
  const { state, ruleSet, t, app } = page;
  const taken = held.taken(state);
  const kinds = Object.keys(ruleSet.tiles).map(Number).sort((a, b) => a - b);
  const rows = [1, 2, 3, 4, 5].map((suit) => kinds.filter((code) => Math.floor(code / 10) === suit));
  return html`<p class="try-hint muted">${t(hint(page))}</p>
    ${rows.filter((row) => row.length).map(
      (row) => html`<div class="try-palette">
        ${row.map((code) => {
          const left = ruleSet.tiles[code] - (taken.get(code) ?? 0);
          return html`<button class="try-tile" type="button" data-pick=${code} data-left=${left}
            ?disabled=${!canPick(page, code, left)} aria-label=${t("try.add", { tile: tileName(code, app.lang), left: Math.max(left, 0) })}
            @click=${() => picked(page, code)}>${tileRow([code], { height: 52, lang: app.lang })}<span class="try-left" aria-hidden="true">${Math.max(left, 0)}</span></button>`;
        })}
      </div>`,
    )}`;
}

function hint(page) {
  const { state, picking } = page;
  if (picking) return `try.hint.${picking}`;
  if (goesToWin(page)) return "try.hint.win";
  return held.size(state.seats[state.seat]) >= most(state) ? "try.hint.full" : "try.hint";
}

const most = (state) => (state.mode === "score" ? 13 : 14);

function canPick(page, code, left) {
  const { picking, state } = page;
  const isFlower = code >= FIRST_FLOWER;
  if (picking === "treasure" || picking === "first" || picking === "win") return !isFlower && left > 0;
  if (picking) return held.meldOf(picking, code) !== null;
  if (isFlower) return left > 0;
  return left > 0 && (goesToWin(page) || held.size(state.seats[state.seat]) < most(state));
}

function picked(page, code) {
  const { state, picking } = page;
  const seat = state.seats[state.seat];
  const save = (changed) => page.change({ seats: put(state, state.seat, changed) });
  page.picking = "";
  if (picking === "treasure" || picking === "win") page.change({ [picking]: code });
  else if (picking === "first") save({ ...seat, first: code });
  else if (picking) save(withMeld(page, seat, picking, code));
  else if (code >= FIRST_FLOWER) save(held.withTile(seat, code, "flowers"));
  else if (goesToWin(page)) page.change({ win: code });
  else save(held.withTile(seat, code));
}

/** A meld's tiles come out of the hand where all of them are in it, else from what is left. */
function withMeld(page, seat, kind, code) {
  const tiles = held.meldOf(kind, code);
  const rest = held.withoutTiles(seat, tiles);
  const hasAll = held.concealed(seat).length - held.concealed(rest).length === tiles.length;
  const meld = { kind, tiles, from: null, treasure: false };
  return { ...(hasAll ? rest : seat), melds: [...seat.melds, meld] };
}
