// Health: what is wrong first and in words, then every process, and the checks of the ledger.

import { Problem, get, post, stream } from "../api.js";
import { number, time } from "../i18n.js";
import { html, nothing, render, repeat } from "../lit.js";
import { said } from "../problems.js";
import { ago, bytes, percent, short, span, took } from "../spans.js";

export const css = "health";

const SERVICES = ["matchmaking", "table", "wallet", "evaluation", "console"];
const BOARDS = {
  matchmaking: "fangcheng-matchmaking",
  table: "fangcheng-tables",
  wallet: "fangcheng-wallet",
  evaluation: "fangcheng-evaluation",
};
const RUNTIME = "fangcheng-runtime";

// How the figures of a process are written, and from where on one is looked at (warn) or acted on (bad).
const LINES = {
  tables: { show: number },
  hands_per_minute: { show: short },
  act_p99_seconds: { show: took, warn: 0.05 },
  commit_p99_seconds: { show: took, warn: 0.1 },
  outbox: { show: number },
  outbox_age_seconds: { show: span, warn: 15, bad: 60 },
  parked: { show: number, bad: 1 },
  evaluator_questions: { show: number },
  trustee_seats: { show: number },
  taken_over: { show: number, warn: 1 },
  imbalance: { show: number, bad: 1 },
  unchained: { show: number, warn: 5_000 },
  settlements_per_minute: { show: short },
  settlements_refused: { show: number, warn: 1 },
  open_holds: { show: number },
  oldest_hold_seconds: { show: span, warn: 12 * 3_600 },
  players_waiting: { show: number },
  bots_waiting: { show: number },
  oldest_ticket_seconds: { show: span, warn: 30, bad: 300 },
  wait_p95_seconds: { show: took, warn: 3 },
  unfinished_matches: { show: number },
  paused_pools: { show: number, warn: 1 },
  load: { show: percent, warn: 0.8 },
  saturation: { show: percent, warn: 0.5, bad: 0.8 },
  threads: { show: number },
  hands_per_second: { show: short },
  refused_calls: { show: number, warn: 1 },
};
const COMMON = {
  lag_seconds: { show: took, warn: 0.05, bad: 0.1 },
  cpu: { show: (cores) => percent(cores), warn: 0.85 },
  memory: { show: bytes },
  calls: { show: short },
  errors: { show: short, warn: 0.01, bad: 1 },
};
// How a finding's parameters are written.
const PARAMS = {
  seconds: took,
  count: number,
  amount: number,
  rate: short,
  share: percent,
};

export function open(root, params, app) {
  const { t } = app;
  let picture = null;
  let problem = null;
  let findings = []; // of the ledger, for operators

  app.title(t("health.title"));
  render(html`<h1>${t("health.title")}</h1><p class="muted">${t("health.waiting")}</p>`, root);
  const close = stream("/api/health/events", (message) => {
    const isFirst = picture === null;
    picture = message;
    draw();
    // The wallets' page leads to the ledger, which is there only now.
    if (isFirst && location.hash === "#ledger") root.querySelector("#ledger").scrollIntoView();
  });

  async function check(kind) {
    problem = null;
    try {
      await post("/api/health/ledger", { check: kind });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problem = error;
    }
    draw();
  }

  async function readFindings() {
    ({ findings = [] } = await get("/api/health/ledger"));
    draw();
  }

  function draw() {
    if (picture === null) return;
    render(
      html`<h1>${t("health.title")}</h1>
        ${found()}
        <h2>${t("health.processes")}</h2>
        <div class="services">${SERVICES.map(service)} ${unknown()}</div>
        ${ledger()}`,
      root,
    );
  }

  // What is wrong.

  function found() {
    if (!picture.processes.some((one) => one.service !== "console")) return html`<p class="panel verdict warn-edge">${t("health.none_configured")}</p>`;
    if (picture.findings.length === 0)
      return html`<section class="panel verdict good-edge" data-findings="0"><h2 class="good">✓ ${t("health.good")}</h2>
        <p class="muted">${t("health.good.more", { processes: number(picture.processes.length) })}</p></section>`;
    return html`<section data-findings=${picture.findings.length}>
      <h2>${t("health.findings", { count: number(picture.findings.length) })}</h2>
      <ol class="findings">${repeat(
        picture.findings,
        (one) => [one.name, one.service, one.process, one.params.pool ?? one.params.currency ?? one.params.method ?? one.params.lane ?? one.params.kind].join(" "),
        finding,
      )}</ol></section>`;
  }

  function finding(one) {
    const said = { ...one.params, service: t(`health.service.${one.service}`), process: one.process };
    for (const [name, show] of Object.entries(PARAMS)) if (typeof said[name] === "number") said[name] = show(said[name]);
    return html`<li class="panel finding ${one.severity}" data-finding=${one.name}>
      <div class="said">
        <span class="badge ${{ page: "bad", ticket: "warn", note: "" }[one.severity]}">${t(`health.severity.${one.severity}`)}</span>
        <strong>${t(`health.finding.${one.name}`, said)}</strong>
      </div>
      <p>${t(`health.todo.${one.name}`, said)}</p>
      <p class="links muted">
        ${one.lobby ? html`<a href="/?${one.lobby}">${t("health.see_tables")}</a>` : nothing}
        ${board(one.board)}
        <span>${t("health.page")} <code>${one.page}</code></span>
      </p>
    </li>`;
  }

  function board(uid) {
    if (!picture.grafana || !uid) return nothing;
    return html`<a href="${picture.grafana}/d/${uid}" target="_blank" rel="noreferrer">${t("health.board")}</a>`;
  }

  // The processes.

  function service(name) {
    const processes = picture.processes.filter((one) => one.service === name);
    const state = picture.services[name];
    if (processes.length === 0 && state === undefined) return nothing;
    return html`<section class="service" data-service=${name} data-serving=${state?.serving ?? ""}>
      <h3><span>${t(`health.service.${name}`)}</span>
        ${
          state === undefined
            ? nothing
            : state.serving
              ? html`<span class="badge good">${t("health.serving")}</span>`
              : html`<span class="badge bad" title=${state.why}>${t("health.not_serving", { since: time(state.since) })}</span>`
        }
        ${board(BOARDS[name])}
      </h3>
      ${state && !state.serving ? html`<p class="bad">${state.why}</p>` : nothing}
      ${processes.length ? html`<ul class="processes">${repeat(processes, (one) => one.address, process)}</ul>` : html`<p class="muted">${t("health.no_metrics")}</p>`}
    </section>`;
  }

  function unknown() {
    const others = picture.processes.filter((one) => !SERVICES.includes(one.service));
    if (others.length === 0) return nothing;
    return html`<section class="service" data-service="">
      <h3>${t("health.service.unknown")}</h3><ul class="processes">${repeat(others, (one) => one.address, process)}</ul></section>`;
  }

  function process(one) {
    const figures = Object.keys(COMMON).map((name) => [name, one[name]]);
    return html`<li class="panel process ${one.away ? "is-away" : ""}" data-process=${one.address} data-away=${one.away !== null}>
      <div class="head">
        <span class="dot ${one.away ? "bad" : "good"}" aria-hidden="true">●</span>
        <strong class="mono">${one.address}</strong>
        <span class="muted">${one.version ? t("health.version", { version: one.version }) : nothing}</span>
        <span class="muted since">${
          one.away
            ? nothing
            : one.started
              ? html`<span title=${time(one.started, { date: true })}>${t("health.up", { span: ago(picture.now - one.started) })}</span>`
              : nothing
        }</span>
      </div>
      ${
        one.away
          ? html`<p class="bad" role="status">${t("health.away", { since: time(one.away.since), why: one.away.why })}
              ${one.seen ? html`<span class="muted">${t("health.as_then", { at: time(one.seen) })}</span>` : t("health.never")}</p>`
          : nothing
      }
      ${
        one.seen
          ? html`<dl class="numbers">${figures.map(([name, value]) => line(name, value, COMMON[name]))}</dl>
            ${one.lines.length ? html`<dl class="numbers own">${one.lines.map(([name, value]) => line(name, value, LINES[name]))}</dl>` : nothing}`
          : nothing
      }
    </li>`;
  }

  function line(name, value, { show, warn, bad }) {
    const size = value === null ? 0 : Math.abs(value);
    const tone = bad !== undefined && size >= bad ? "bad" : warn !== undefined && size >= warn ? "warn" : "";
    return html`<div data-line=${name} data-value=${value ?? ""}><dt>${t(`health.line.${name}`)}</dt>
      <dd class=${tone}>${value === null ? "–" : show(value)}</dd></div>`;
  }

  // The ledger.

  function ledger() {
    const { audit, verify } = picture.ledger;
    const busy = audit.running ?? verify.running;
    const button = (kind) =>
      app.person.role === "operator"
        ? html`<button class="button" ?disabled=${busy !== undefined} @click=${() => check(kind)}>${t(`health.ledger.${kind}.start`)}</button>`
        : nothing;
    return html`<section id="ledger" class="panel ledger">
      <h2>${t("health.ledger")}</h2>
      <p class="muted">${t("health.ledger.more")}</p>
      ${problem ? html`<p class="error" role="alert">${said(problem)}</p>` : nothing}
      <div class="grid">
        <div data-check="audit"><h3>${t("health.ledger.audit")}</h3><p class="muted">${t("health.ledger.audit.more")}</p>
          ${state(audit, audited)} ${button("audit")}</div>
        <div data-check="verify"><h3>${t("health.ledger.verify")}</h3><p class="muted">${t("health.ledger.verify.more")}</p>
          ${state(verify, verified)} ${button("verify")}</div>
      </div></section>`;
  }

  function state({ running, done }, told) {
    return html`<div role="status">
      ${running ? html`<p class="warn">${t("health.ledger.running", { by: running.by, span: ago(picture.now - running.since) })}</p>` : nothing}
      ${
        done === undefined
          ? html`<p>${t("health.ledger.never")}</p>`
          : html`<p class=${done.error ? "bad" : done.good ? "good" : "bad"}>${
              done.error ? t("health.ledger.failed", { why: done.error }) : told(done)
            }</p><p class="muted">${t("health.ledger.done", { at: time(done.at, { date: true }), by: done.by, span: took(done.seconds) })}</p>`
      }</div>`;
  }

  function audited(done) {
    const counts = { accounts: number(done.accounts), entries: number(done.entries), settlements: number(done.settlements) };
    if (done.good) return t("health.ledger.audit.good", counts);
    return html`${t("health.ledger.audit.bad", { ...counts, findings: number(done.findings) })}
      ${
        app.person.role !== "operator"
          ? nothing
          : findings.length
            ? html`<ul class="found">${findings.map((one) => html`<li>${one}</li>`)}</ul>`
            : html`<button class="button quiet" @click=${readFindings}>${t("health.ledger.show")}</button>`
      }`;
  }

  function verified(done) {
    const counts = { operations: number(done.operations), entries: number(done.entries), waiting: number(done.waiting) };
    if (!done.good) return t("health.ledger.verify.bad", { finding: done.finding });
    return html`${t("health.ledger.verify.good", counts)} <span class="muted">${t("health.ledger.head")} <code class="hash">${done.head}</code></span>`;
  }

  return close;
}
