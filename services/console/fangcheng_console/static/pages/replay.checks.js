// The panel of a replay that checks the shuffle, here in the browser.

import { html, nothing } from "../lit.js";
import { number } from "../i18n.js";
import { tileName } from "../tiles.js";
import { available, fromBase64, fromHex, hex, verify } from "../verify.js";

const SIGNS = { true: "✓", false: "✗", null: "?" };

export function checksPanel(replay, app, redraw) {
  const { t } = app;
  const { record } = replay;
  let checks = null;
  let working = false;
  let kept = "";
  let problem = "";

  async function run(event) {
    event.preventDefault();
    kept = new FormData(event.target).get("kept").trim().toLowerCase();
    problem = kept && !/^[0-9a-f]{64}$/.test(kept) ? t("replay.checks.kept.wrong") : "";
    if (problem || working) return redraw();
    working = true;
    redraw();
    const told = kept || replay.commitment;
    checks = await verify({
      record,
      commitment: told ? fromHex(told) : null,
      tiles: replay.rule_set?.tiles ?? null,
    });
    working = false;
    redraw();
  }

  const outcome = () =>
    checks.some((check) => check.holds === false) ? "false" : checks.some((check) => check.holds === null) ? "null" : "true";

  function line({ id, holds, facts }) {
    const named = { ...facts };
    for (const key of ["found", "expected"]) {
      if (id === "wall" || id === "draws") named[key] = facts[key] ? tileName(facts[key], app.lang) : "–";
    }
    for (const key of ["tiles", "front", "back", "turned"]) {
      if (typeof named[key] === "number") named[key] = number(named[key]);
    }
    return html`<li class=${`check ${holds === true ? "good" : holds === false ? "bad" : "warn"}`} data-check=${id} data-holds=${String(holds)}>
      <span class="check-sign" role="img" aria-label=${t(`replay.check.${holds}`)}>${SIGNS[holds]}</span>
      <div><p>${t(`replay.check.${id}.${holds}`, named)}</p>${values(id, facts)}</div>
    </li>`;
  }

  function values(id, facts) {
    const row = (name, value) => html`<dt>${t(`replay.checks.${name}`)}</dt><dd><code>${value || "–"}</code></dd>`;
    if (id === "chain") return html`<dl class="check-values">${row("secret", facts.secret)}${row("hashed", facts.found)}${row("promised", facts.expected)}</dl>`;
    if (id === "named" || id === "hand" || id === "entropy" || id === "dice") return html`<dl class="check-values">${row("found", facts.found)}${row("promised", facts.expected)}</dl>`;
    if (id === "wall") return html`<dl class="check-values">${row("seed", facts.seed)}</dl>`;
    return nothing;
  }

  function sources() {
    const row = (name, value) => html`<tr><th scope="row">${t(`replay.checks.${name}`)}</th><td><code>${value}</code></td></tr>`;
    const started = record.events.find((event) => event.hand_started)?.hand_started;
    const shares = record.entropy.map((share) => hex(fromBase64(share)) || "–").join(" · ");
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("replay.checks.sources")}><table class="table check-sources">
      <tbody><tr><th scope="rowgroup" colspan="2">${t("replay.checks.of_table")}</th></tr>
        ${row("commitment", replay.commitment ?? t("replay.checks.gone"))}</tbody>
      <tbody><tr><th scope="rowgroup" colspan="2">${t("replay.checks.of_record")}</th></tr>
        ${row("secret", hex(fromBase64(record.secret)))}
        ${row("hand_commitment", started ? hex(fromBase64(started.commitment)) : "–")}
        ${row("entropy", shares)}${row("dice", record.dice.join(" ") || "–")}
        ${row("wall", record.wall.join(" "))}</tbody>
    </table></div>`;
  }

  function drawn() {
    return html`<section class="panel replay-checks" id="verify" data-outcome=${checks ? outcome() : ""}>
      <h2>${t("replay.checks")}</h2>
      <p class="muted">${t("replay.checks.lead")}</p>
      ${
        available()
          ? html`<form class="toolbar" @submit=${run}>
              <button class="button primary" data-act="verify" ?disabled=${working}>${t(working ? "replay.checks.working" : "replay.checks.run")}</button>
              <div class="field"><label for="kept">${t("replay.checks.kept")}</label>
                <input id="kept" name="kept" spellcheck="false" autocomplete="off" maxlength="64" .value=${kept} aria-describedby="kept-problem"></div>
            </form><p id="kept-problem" class="error" role="alert" ?hidden=${!problem}>${problem}</p>`
          : html`<p class="error" role="alert">${t("replay.checks.insecure")}</p>`
      }
      ${
        checks && !working
          ? html`<p class=${`check-outcome ${{ true: "good", false: "bad", null: "warn" }[outcome()]}`} role="status">${t(`replay.checks.outcome.${outcome()}`)}</p>
              <ul class="checks">${checks.map(line)}</ul>`
          : nothing
      }
      <details><summary>${t("replay.checks.sources")}</summary>${sources()}</details>
    </section>`;
  }

  return { drawn };
}
