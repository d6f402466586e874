// Small charts of figures over time, drawn by uPlot in the colours of the theme.

import { format } from "./i18n.js";
import uPlot from "./vendor/uplot/uPlot.js";

const LINES = ["--accent", "--warn"];

function colour(name, share = 100) {
  const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return share === 100 ? value : `color-mix(in srgb, ${value} ${share}%, transparent)`;
}

function clock(seconds) {
  return format("DateTimeFormat", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(new Date(seconds * 1000));
}

// A chart in an element. `series`: [{label, show(value) -> text}]; `least`: what the axis reaches at
// least; `told(text)`: what stands under the pointer, "" when it has left.
// Returns {set([times in s, values, …]), close()}; a value that nobody knows is null, and a gap.
export function chart(root, { series, height = 56, least = 1, told = () => {} }) {
  function line(index) {
    const name = LINES[index % LINES.length];
    return {
      label: series[index].label,
      width: 1.5,
      stroke: () => colour(name),
      fill: index === 0 ? () => colour(name, 14) : undefined,
      points: { show: false },
      spanGaps: false,
    };
  }

  function under(self) {
    const at = self.cursor.idx;
    if (at === null || at === undefined || self.cursor.left < 0) {
      told("");
      return;
    }
    const said = series.map((one, index) => {
      const value = self.data[index + 1][at];
      return `${one.label} ${value === null || value === undefined ? "–" : one.show(value)}`;
    });
    told(`${clock(self.data[0][at])} · ${said.join(", ")}`);
  }

  const width = () => Math.max(root.clientWidth, 40);
  const plot = new uPlot(
    {
      width: width(),
      height,
      padding: [4, 0, 2, 0],
      legend: { show: false },
      cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 5 } },
      scales: {
        x: { time: true },
        y: { range: (_self, low, high) => [Math.min(0, low ?? 0), Math.max(least, (high ?? 0) * 1.1)] },
      },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...series.map((_, index) => line(index))],
      hooks: { setCursor: [under] },
    },
    [[], ...series.map(() => [])],
    root,
  );
  const resized = new ResizeObserver(() => {
    if (plot.width !== width()) plot.setSize({ width: width(), height });
  });
  const themed = () => plot.redraw(false);
  resized.observe(root);
  document.addEventListener("themechange", themed);
  return {
    set(columns) {
      plot.setData(columns);
    },
    close() {
      resized.disconnect();
      document.removeEventListener("themechange", themed);
      plot.destroy();
    },
  };
}
