// Spans of time and sizes, as short as they can be read.

import { format, language, number } from "./i18n.js";

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

// A span in its largest unit: "3 min", "2 小时".
export function span(seconds) {
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? UNITS[UNITS.length - 1];
  const shown = Math.max(0, Math.floor(seconds / length));
  if (unit === "second") return inSeconds(number(shown));
  return format("NumberFormat", { style: "unit", unit, unitDisplay: "short" }).format(shown);
}

// How long ago something was, given in ms.
export function ago(ms) {
  return span(ms / 1000);
}

// A time that something takes: "0.8 ms", "1.6 s".
export function took(seconds) {
  if (seconds >= 120) return span(seconds);
  const shown = format("NumberFormat", { maximumSignificantDigits: seconds >= 100 ? 3 : 2 });
  return seconds < 1 ? `${shown.format(seconds * 1000)} ms` : inSeconds(shown.format(seconds));
}

// Shorter than what Intl writes, "5 secs".
function inSeconds(shown) {
  return `${shown} ${language() === "zh" ? "秒" : "s"}`;
}

// A number with no more digits than one reads.
export function short(value) {
  return format("NumberFormat", value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 2 }).format(value);
}

export function percent(share) {
  return format("NumberFormat", { style: "percent", maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(share);
}

export function bytes(value) {
  const isLarge = value >= 2 ** 30;
  return format("NumberFormat", {
    style: "unit",
    unit: isLarge ? "gigabyte" : "megabyte",
    unitDisplay: "short",
    maximumFractionDigits: isLarge ? 1 : 0,
  }).format(value / (isLarge ? 2 ** 30 : 2 ** 20));
}
