// The suite's figures above the lobby: what they are now, and how they came about.

import { chart } from "./charts.js";
import { number, time } from "./i18n.js";
import { html, nothing, render } from "./lit.js";
import { percent, short, took } from "./spans.js";

const KEPT_SECONDS = 3_600;
const RANGES = [15, 60]; // minutes

// Each: its name, the columns of the stream that it shows, whose processes tell it, how a value is
// written, and what the axis reaches at least.
const FIGURES = [
  { name: "tables", columns: ["tables"], service: "table", show: number, least: 4 },
  { name: "hands", columns: ["hands_per_minute"], service: "table", show: short, least: 4 },
  { name: "wait", columns: ["wait_p50_seconds", "wait_p95_seconds"], service: "matchmaking", show: took, least: 1 },
  { name: "load", columns: ["evaluator_load"], service: "evaluation", show: percent, least: 0.1 },
  { name: "ledger", columns: ["imbalance"], service: "wallet", show: number, least: 1 },
];
// The columns of a point, as they stand in it.
const ORDER = ["time", ...FIGURES.flatMap((figure) => figure.columns)];

// Draws them into an element. Returns {hear(message of the stream, missing services), close()}.
export function figures(root, app) {
  const { t } = app;
  let columns = Object.fromEntries(ORDER.map((name) => [name, []]));
  let missing = {};
  let minutes = RANGES.includes(Number(localStorage.getItem("figures"))) ? Number(localStorage.getItem("figures")) : 15;
  const pointed = {};

  draw();
  const charts = FIGURES.map((figure) => [
    figure,
    chart(root.querySelector(`[data-figure=${figure.name}] .chart`), {
      least: figure.least,
      series: figure.columns.map((column) => ({ label: t(`lobby.figure.${column}`), show: figure.show })),
      told(text) {
        pointed[figure.name] = text;
        draw();
      },
    }),
  ]);

  function choose(range) {
    minutes = range;
    localStorage.setItem("figures", String(range));
    draw();
    plot();
  }

  function draw() {
    render(
      html`${FIGURES.map((figure, index) => tile(figure, index === 0 ? ranges() : nothing))}`,
      root,
    );
  }

  function ranges() {
    return html`<div class="ranges" role="group" aria-label=${t("lobby.figure.range")}>
      ${RANGES.map(
        (range) =>
          html`<button type="button" class="button quiet" aria-pressed=${range === minutes} @click=${() => choose(range)}>${t("lobby.figure.minutes", { minutes: range })}</button>`,
      )}
    </div>`;
  }

  function tile(figure, beside) {
    const values = figure.columns.map((column) => columns[column].at(-1) ?? null);
    const lost = values[0] === null ? missing[figure.service] : undefined;
    const why = !lost
      ? nothing
      : lost.since === null
        ? t("lobby.figure.unknown", { service: t(`lobby.service.${figure.service}`) })
        : t("lobby.figure.missing", { service: t(`lobby.service.${figure.service}`), since: time(lost.since) });
    return html`<figure class="panel figure" data-figure=${figure.name} data-value=${values[0] ?? ""}>
      <figcaption>${t(`lobby.figure.${figure.name}`)}</figcaption>
      ${beside}
      <p class="value ${figure.name === "ledger" && values[0] ? "bad" : ""}">${value(figure, values)}</p>
      <div class="chart" role="img" aria-label=${t("lobby.figure.chart", { name: t(`lobby.figure.${figure.name}`), minutes })}></div>
      <p class="under ${lost ? "warn" : "muted"}">${pointed[figure.name] || (lost ? why : t(`lobby.figure.${figure.name}.more`))}</p>
    </figure>`;
  }

  function value(figure, values) {
    if (values[0] === null) return "–";
    if (figure.name === "ledger") return values[0] === 0 ? t("lobby.figure.balanced") : t("lobby.figure.off", { amount: number(values[0]) });
    return html`${figure.show(values[0])}${values.slice(1).map((other) => html`<span class="beside">${other === null ? "–" : figure.show(other)}</span>`)}`;
  }

  function plot() {
    const since = (columns.time.at(-1) ?? 0) - minutes * 60;
    const from = columns.time.findIndex((at) => at >= since);
    for (const [figure, drawn] of charts) {
      drawn.set([columns.time, ...figure.columns.map((name) => columns[name])].map((column) => column.slice(Math.max(0, from))));
    }
  }

  return {
    hear(message, nowMissing) {
      const isNews = message.figures || message.point || nowMissing !== missing;
      missing = nowMissing;
      if (message.figures) columns = message.figures;
      if (message.point) ORDER.forEach((name, index) => columns[name].push(message.point[index]));
      while (columns.time.length && columns.time[0] < columns.time.at(-1) - KEPT_SECONDS) {
        for (const name of ORDER) columns[name].shift();
      }
      if (!isNews) return;
      draw();
      if (message.figures || message.point) plot();
    },
    close() {
      for (const [, drawn] of charts) drawn.close();
    },
  };
}
