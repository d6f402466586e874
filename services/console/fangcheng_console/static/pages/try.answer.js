// What the evaluator says of a hand, in tiles, numbers and words.

import { html, nothing } from "../lit.js";
import { tileName, tileRow } from "../tiles.js";
import { meaningOf } from "../meanings.js";
import { amount, reasonName, signed, tone } from "../money.js";
import { explained } from "./try.builder.js";
import * as held from "./try.state.js";

const NEVER = 14; // the evaluator's shanten of a hand that can win no more

export function answer(page) {
  const { found, failure, state, t } = page;
  const isFresh = found !== null && found.for === held.toQuery(state);
  const lacking = held.missing(state);
  return html`<div class=${isFresh || !found ? "try-found" : "try-found stale"} data-for=${found?.for ?? ""} aria-busy=${!isFresh && !lacking && !failure && !Object.keys(page.problems).length}>
    ${failure ? html`<p class="error" role="alert" data-error=${failure.field ?? ""}>${explained(page, failure)}${where(page, failure)}</p>` : nothing}
    ${!found && !lacking && Object.keys(page.problems).length ? html`<p class="empty">${t("try.see_field")}</p>` : nothing}
    ${lacking ? html`<p class="empty" data-missing=${lacking.key}>${t(lacking.key, lacking.params)}</p>` : nothing}
    ${!found || lacking ? nothing : found.mode === "score" ? score(page, found.score) : analysis(page, found.analysis)}
  </div>`;
}

function where(page, failure) {
  const seat = /^hand\.seats\[(\d)\]/.exec(failure.field ?? "");
  return seat ? html` (${page.t("try.seat", { seat: seat[1] })})` : nothing;
}

// ---- Analyze ----

function analysis(page, found) {
  const { t } = page;
  const isWhole = held.size(page.state.seats[page.state.seat]) === 14;
  return html`
    <div class="try-facts" data-shanten=${found.shanten} data-shape-shanten=${found.shape_shanten} data-wins=${found.wins}>
      ${verdict(page, found, isWhole)}
      <span class="muted">${t("try.shape", { away: distance(page, found.shape_shanten) })}</span>
    </div>
    ${found.wins ? win(page, found) : nothing}
    ${isWhole ? nothing : found.waits.length ? waits(page, found) : useful(page, found)}
    ${found.kongs.length ? kongs(page, found.kongs, t("try.kongs")) : nothing}
    ${found.claim_kongs.length ? kongs(page, found.claim_kongs, t("try.claim_kongs")) : nothing}
    ${found.discards.length ? discards(page, found.discards) : nothing}
  `;
}

function distance({ t }, shanten) {
  if (shanten < 0) return t("try.away.complete");
  if (shanten >= NEVER) return t("try.away.never");
  if (shanten === 0) return t("try.away.ready");
  return t(shanten === 1 ? "try.away.one" : "try.away.more", { count: shanten });
}

function verdict(page, found, isWhole) {
  const { t } = page;
  if (found.wins) return html`<strong class="try-verdict good">${t("try.wins")}</strong>`;
  if (isWhole && found.shape_shanten < 0) return html`<strong class="try-verdict warn">${t("try.complete_no_win")}</strong>`;
  if (!isWhole && found.shape_shanten === 0 && !found.waits.length) return html`<strong class="try-verdict warn">${t("try.ready_no_win")}</strong>`;
  const tone = found.shanten === 0 ? "good" : found.shanten >= NEVER ? "bad" : "";
  return html`<strong class=${`try-verdict ${tone}`}>${distance(page, found.shanten)}</strong>`;
}

function worth({ t, ruleSet }, wait) {
  const told = [];
  if (wait.least_fan) told.push(t("try.fan", { fan: wait.least_fan }));
  if (wait.least_units) told.push(t("try.units", { units: wait.least_units }));
  if (!told.length) told.push(t(ruleSet?.units_of_waits ? "try.no_discard_win" : "try.no_fan"));
  return told.join(" · ");
}

function waits(page, found) {
  const { t } = page;
  return html`<h2>${t("try.waits")} <small class="muted" data-waits-left=${found.waits_left}>${t("try.left", { left: found.waits_left })}</small></h2>
    <ul class="try-cards">${found.waits.map((wait) => waitCard(page, wait))}</ul>`;
}

function waitCard(page, wait) {
  const { t, app } = page;
  return html`<li class="try-card" data-wait=${wait.tile} data-fan=${wait.least_fan} data-units=${wait.least_units} data-left=${wait.left}>
    ${tileRow([wait.tile], { height: 60, lang: app.lang })}
    <span><b>${tileName(wait.tile, app.lang)}</b><br />${worth(page, wait)}<br /><span class="muted">${t("try.left", { left: wait.left })}</span></span>
  </li>`;
}

function useful(page, found) {
  const { t, app } = page;
  if (!found.useful.length) return nothing;
  return html`<h2>${t("try.useful")} <small class="muted" data-useful-left=${found.useful_left}>${t("try.kinds_left", { kinds: found.useful.length, left: found.useful_left })}</small></h2>
    <ul class="try-cards small">${found.useful.map(
      (one) => html`<li class="try-card" data-useful=${one.tile} data-left=${one.left}>${tileRow([one.tile], { height: 44, lang: app.lang })}<span class="muted">×${one.left}</span></li>`,
    )}</ul>`;
}

function win(page, found) {
  const { t, ruleSet } = page;
  const isFlat = found.fan_items.some((item) => !item.fan);
  const total = found.fan_items.reduce((sum, item) => sum + item.fan, 0);
  return html`<h2>${t(found.readings.length > 1 ? "try.readings" : "try.reading")}</h2>
    ${found.readings.map((reading) => drawReading(page, reading))}
    <h2>${t("try.items")}</h2>
    ${items(page, found.fan_items, ruleSet)}
    <p class="try-total" data-total=${total}>${isFlat ? t("try.flat") : t("try.total", { fan: total })} <span class="muted">${t("try.by_hand")}</span></p>`;
}

function drawReading(page, reading, glow = 0) {
  const { t, app } = page;
  let isMarked = false;
  return html`<figure class="try-reading" data-reading=${reading.shape} data-sets=${reading.sets.map((set) => set.tiles.join("-")).join(" ")}>
    <div class="try-sets">${reading.sets.map((set) => {
      const at = glow && !isMarked ? set.tiles.indexOf(glow) : -1;
      isMarked ||= at >= 0;
      return tileRow(set.tiles, { height: 46, lang: app.lang, glow: at >= 0 ? [at] : [] });
    })}</div>
    <figcaption class="muted">${t(`try.shape.${reading.shape}`)}</figcaption>
  </figure>`;
}

/** The fan items with what each is for; `ruleSet` has the meanings. */
export function items(page, found, ruleSet) {
  const { t, app } = page;
  if (!found.length) return html`<p class="muted">${t("try.no_item")}</p>`;
  const specs = new Map(ruleSet?.fan_items.map((spec) => [spec.id, spec]));
  const meaning = (id) => (specs.has(id) ? meaningOf(ruleSet.id, specs.get(id), app.lang) : { text: "", lang: "en" });
  return html`<table class="table try-items">
    <thead><tr><th scope="col">${t("try.item")}</th><th scope="col" class="number">${t("try.fan_head")}</th><th scope="col">${t("try.meaning")}</th></tr></thead>
    <tbody>${found.map(
      (item) => html`<tr data-item=${item.id} data-fan=${item.fan} data-count=${item.count}>
        <th scope="row">${app.lang === "zh" ? item.name_zh : html`${item.name_en} <span class="muted" lang="zh">${item.name_zh}</span>`}</th>
        <td class="number">${item.fan ? (item.count > 1 ? `${item.count} × ${item.fan / item.count}` : item.fan) : t("try.flat_short")}</td>
        <td class="muted" lang=${meaning(item.id).lang}>${meaning(item.id).text}</td></tr>`,
    )}</tbody></table>`;
}

function kongs(page, found, title) {
  const { t, app } = page;
  return html`<h2>${title}</h2><ul class="try-list">${found.map(
    (kong) => html`<li data-kong=${kong.tile} data-kind=${kong.kind} data-kong-waits=${kong.waits.map((wait) => wait.tile).join(" ")}>
      ${tileRow(kong.kind === "whirlwind" ? [45, 46, 47] : Array(4).fill(kong.tile), { height: 40, lang: app.lang })}
      <span>${t(`try.meld.${kong.kind}`)}</span>
      ${kong.waits.length
        ? html`<span class="muted">${t("try.then_waits")}</span>${tileRow(kong.waits.map((wait) => wait.tile), { height: 40, lang: app.lang })}<span class="muted">${t("try.left", { left: kong.waits.reduce((sum, wait) => sum + wait.left, 0) })}</span>`
        : html`<span class="muted">${t(kong.kind === "whirlwind" ? "try.then_draws" : "try.then_none")}</span>`}
    </li>`,
  )}</ul>`;
}

function discards(page, found) {
  const { t, app, state } = page;
  const throwing = (tile) => {
    const seat = held.withoutTiles(state.seats[state.seat], [tile]);
    page.change({ seats: state.seats.map((old, at) => (at === state.seat ? seat : old)) });
  };
  const best = found[0];
  return html`<h2>${t("try.discards")}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("try.discards")}><table class="table try-discards">
      <thead><tr><th scope="col" class="number">#</th><th scope="col">${t("try.discard")}</th><th scope="col">${t("try.then")}</th><th scope="col">${t("try.useful")}</th><th scope="col" class="number">${t("try.tiles_left")}</th></tr></thead>
      <tbody>${found.map((choice) => {
        const shown = choice.waits.length ? choice.waits : choice.useful;
        const left = choice.waits.length ? choice.waits_left : choice.useful_left;
        const isTied = found.filter((one) => one.rank === choice.rank).length > 1;
        return html`<tr class=${choice.rank === best.rank ? "best" : ""} data-discard=${choice.tile} data-rank=${choice.rank} data-shanten=${choice.shanten}
            data-left=${choice.useful_left} data-waits=${choice.waits.map((wait) => wait.tile).join(" ")}>
          <td class="number">${choice.rank}${isTied ? html`<abbr title=${t("try.tied")}>=</abbr>` : nothing}</td>
          <td><button class="try-tile" type="button" aria-label=${t("try.throw", { tile: tileName(choice.tile, app.lang) })} @click=${() => throwing(choice.tile)}>${tileRow([choice.tile], { height: 44, lang: app.lang })}</button></td>
          <td>${choice.waits.length ? html`<span class="badge good">${t("try.away.ready")}</span>` : distance(page, choice.shanten)}</td>
          <td class="try-many">${shown.length ? tileRow(shown.map((one) => one.tile), { height: 32, lang: app.lang }) : "–"}
            ${choice.waits.length ? html`<div class="muted">${fanRange(page, choice.waits)}</div>` : nothing}</td>
          <td class="number">${left}</td></tr>`;
      })}</tbody></table></div>
    ${found.some((one) => found.filter((other) => other.rank === one.rank).length > 1) ? html`<p class="muted">${t("try.ties")}</p>` : nothing}`;
}

function fanRange({ t }, waits) {
  const fans = waits.map((wait) => wait.least_fan);
  const [least, most] = [Math.min(...fans), Math.max(...fans)];
  return least === most ? t("try.fan", { fan: least }) : t("try.fan_range", { least, most });
}

// ---- Score ----

function score(page, found) {
  const { t, state } = page;
  return html`
    <ul class="try-net">${found.net.map(
      (units, seat) => html`<li data-net=${units} data-net-seat=${seat}><span>${t("try.seat", { seat })}${state.dealer === seat ? html` <span class="badge">${t("try.is_dealer")}</span>` : nothing}</span>
        <strong class=${tone(units)}>${signed(units)}</strong></li>`,
    )}
    ${found.house ? html`<li data-house=${found.house}><span>${t("try.house")}</span><strong>${signed(found.house)}</strong></li>` : nothing}</ul>
    ${found.winners.map((winner) => winnerOf(page, winner, found.losers))}
    <h2>${t("try.transfers")}</h2>
    ${found.transfers.length
      ? html`<table class="table"><thead><tr><th scope="col">${t("try.pays")}</th><th scope="col">${t("try.is_paid")}</th><th scope="col" class="number">${t("try.units_head")}</th><th scope="col">${t("try.for")}</th></tr></thead>
        <tbody>${found.transfers.map(
          (one) => html`<tr data-transfer data-from=${one.from_seat ?? "house"} data-to=${one.to_seat ?? "house"} data-amount=${one.amount} data-reason=${one.reason}>
            <td>${party(page, one.from_seat)}</td><td>${party(page, one.to_seat)}</td><td class="number">${amount(one.amount)}</td><td>${reasonName(one.reason)}</td></tr>`,
        )}</tbody></table>`
      : html`<p class="muted" data-no-transfers>${t("try.nobody_pays")}</p>`}`;
}

const party = ({ t }, seat) => (seat === null ? t("try.house") : t("try.seat", { seat }));

function winnerOf(page, winner, losers) {
  const { t, ruleSet, state } = page;
  const own = losers.filter((one) => one.winner === winner.seat);
  return html`<section data-winner=${winner.seat} data-fan=${winner.fan} data-flat=${winner.flat} data-flowers=${winner.flower_points} data-multiplier=${winner.multiplier}>
    <h2>${t(`try.wins_by.${state.by}`, { seat: winner.seat, from: state.from ?? "" })}</h2>
    ${drawReading(page, winner.reading, state.win)}
    ${items(page, winner.items, ruleSet)}
    <p class="try-total">${winner.flat ? t("try.units_each", { units: winner.flat }) : t("try.total", { fan: winner.fan })}
      ${winner.flower_points ? html` · ${t("try.flower_points", { points: winner.flower_points })}` : nothing}
      ${winner.multiplier > 1 ? html` · ${t("try.times", { times: winner.multiplier })}` : nothing}</p>
    <table class="table"><thead><tr><th scope="col">${t("try.loser")}</th><th scope="col">${t("try.pays_more_for")}</th><th scope="col" class="number">${t("try.fan_head")}</th><th scope="col" class="number">${t("try.units_head")}</th></tr></thead>
      <tbody>${own.map(
        (one) => html`<tr data-loser=${one.seat} data-of=${one.winner} data-fan=${one.fan} data-amount=${one.amount} data-multiplier=${one.multiplier} data-capped=${one.capped} data-items=${one.items.map((item) => item.id).join(" ")}>
          <td>${party(page, one.seat)}</td>
          <td>${one.items.length ? one.items.map((item) => itemName(page, item)).join(" · ") : "–"}
            ${one.multiplier > 1 ? html` <span class="badge">${t("try.times", { times: one.multiplier })}</span>` : nothing}
            ${one.capped ? html` <span class="badge warn">${t("try.capped")}</span>` : nothing}</td>
          <td class="number">${one.amount && !winner.flat ? one.fan : "–"}</td>
          <td class="number">${one.amount ? amount(one.amount) : t("try.pays_nothing")}</td></tr>`,
      )}</tbody></table>
  </section>`;
}

function itemName({ app }, item) {
  const name = app.lang === "zh" ? item.name_zh : item.name_en;
  return item.fan ? `${name} ${item.fan}` : name;
}
