// The panel of a replay that tells what the evaluation service says of a seat's hand.

import { get } from "../api.js";
import { has, number } from "../i18n.js";
import { html, nothing } from "../lit.js";
import { tileName, tileRow } from "../tiles.js";

const HEIGHT = 36;
const MOST_DISCARDS = 6;
const NEVER = 14; // the shanten of a hand that can win no more

export function evaluatorPanel(api, app, redraw) {
  const { t } = app;
  const told = [null, null, null, null]; // by seat: what was answered, or the Problem

  async function ask(seat) {
    told[seat] = "asked";
    try {
      told[seat] = await get(`${api}/analysis?seat=${seat}`);
    } catch (problem) {
      told[seat] = problem;
    }
    redraw();
  }

  const leftOf = (tiles, left) => tiles.reduce((sum, tile) => sum + (left[tile] ?? 0), 0);

  function stands(shanten, isShort = false) {
    if (shanten >= NEVER) return t("replay.shanten.never");
    if (shanten < 0) return t("replay.shanten.wins");
    return shanten ? t(isShort ? "replay.shanten.short" : "replay.shanten", { shanten }) : t("replay.shanten.ready");
  }

  function waitsOf(waits, left) {
    return html`<ul class="waits">${waits.map(
      (wait) => html`<li data-wait=${wait.tile} data-left=${left[wait.tile]} data-fan=${wait.least_fan}>
        ${tileRow([wait.tile], { height: HEIGHT, lang: app.lang, dim: left[wait.tile] ? [] : [0], zone: "wait" })}
        <span>${t("replay.left", { left: left[wait.tile] })}</span>
        <span class="muted">${wait.least_fan ? t("replay.least_fan", { fan: wait.least_fan }) : t("replay.no_fan")}</span>
      </li>`,
    )}</ul>`;
  }

  function useful(tiles, left) {
    if (!tiles.length) return nothing;
    return html`<p>${t("replay.useful", { kinds: tiles.length, left: number(leftOf(tiles, left)) })}</p>
      <div class="useful" role="group" aria-label=${t("replay.useful.tiles")}>${tiles.map((tile) => tileRow([tile], { height: HEIGHT, lang: app.lang, zone: "useful", dim: left[tile] ? [] : [0] }))}</div>`;
  }

  function discards(analysis, left, next) {
    const reach = (choice) => leftOf(choice.waits.length ? choice.waits.map((wait) => wait.tile) : choice.useful_tiles, left);
    const sorted = [...analysis.discards].sort((one, other) => one.shanten - other.shanten || reach(other) - reach(one));
    const shown = sorted.slice(0, MOST_DISCARDS);
    const made = next?.discarded ? sorted.find((choice) => choice.tile === next.discarded.tile) : undefined;
    if (made && !shown.includes(made)) shown.push(made);
    return html`<table class="table discards">
      <thead><tr><th scope="col">${t("replay.discard")}</th><th scope="col">${t("replay.then")}</th><th scope="col" class="number">${t("replay.tiles_left")}</th></tr></thead>
      <tbody>${shown.map(
        (choice) => html`<tr class=${choice === made ? "made" : ""} data-discard=${choice.tile} data-shanten=${choice.shanten} data-reach=${reach(choice)}>
          <th scope="row">${tileRow([choice.tile], { height: HEIGHT, lang: app.lang, zone: "choice" })}${choice === made ? html` <span class="badge">${t("replay.made")}</span>` : nothing}</th>
          <td>${stands(choice.shanten, true)}${choice.waits.length ? html`: ${choice.waits.map((wait) => tileName(wait.tile, app.lang)).join(t("result.comma"))}` : nothing}</td>
          <td class="number">${number(reach(choice))}</td>
        </tr>`,
      )}</tbody>
    </table>`;
  }

  // `next`: the event that follows the step; undefined at the end.
  function drawn(step, seat, next) {
    const answer = told[seat];
    if (answer === null) ask(seat);
    if (answer === null || answer === "asked") return html`<p class="muted" aria-busy="true">${t("replay.evaluator.asked")}</p>`;
    if (answer instanceof Error) {
      const key = `replay.evaluator.${answer.reason}`;
      return html`<p class="error" role="alert" data-reason=${answer.reason}>${has(key) ? t(key) : answer.message}</p>`;
    }
    const one = answer.steps[step];
    if (!one) return html`<p class="muted" data-evaluated="none">${t("replay.evaluator.none")}</p>`;
    const analysis = answer.analyses[one.analysis];
    const isDiscard = next?.discarded?.seat === seat ? next : undefined;
    return html`<div class="evaluated" data-evaluated=${seat} data-shanten=${analysis.shanten} data-wins=${analysis.wins}>
      <p><strong>${stands(analysis.shanten)}</strong></p>
      ${analysis.waits.length ? waitsOf(analysis.waits, one.left) : useful(analysis.useful_tiles, one.left)}
      ${analysis.discards.length ? discards(analysis, one.left, isDiscard) : nothing}
    </div>`;
  }

  return { drawn };
}
