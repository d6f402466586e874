// The tiles: their pictures, names, text and order. A tile is its code, as on the wire: 11-19
// characters, 21-29 dots, 31-39 bamboos, 41-47 winds and dragons, 51-58 flowers, 0 face down.

import { html, svg, nothing } from "./lit.js";

const SPRITE = "/static/tiles.svg";
const SUITS = "mpszf";
const RANKS = { m: 9, p: 9, s: 9, z: 7, f: 8 };

const FACE_DOWN = 0;

/** Every code with a face, in order: TILES.slice(0, 34) are those that are played. */
export const TILES = [...SUITS].flatMap((suit, at) =>
  Array.from({ length: RANKS[suit] }, (_, rank) => (at + 1) * 10 + rank + 1),
);

const KNOWN = new Set([FACE_DOWN, ...TILES]);

const NAMES = {
  zh: {
    suits: ["万", "饼", "条"],
    digits: [..."一二三四五六七八九"],
    others: [[..."东南西北白发中"], [..."春夏秋冬梅兰竹菊"]],
    hidden: "暗牌",
  },
  en: {
    suits: ["character", "dot", "bamboo"],
    others: [
      ["east wind", "south wind", "west wind", "north wind", "white dragon", "green dragon", "red dragon"],
      ["spring", "summer", "autumn", "winter", "plum blossom", "orchid", "bamboo plant", "chrysanthemum"],
    ],
    hidden: "face down",
  },
};

/** The name of a tile in words: "五饼", "5 dots"; of a tile that nobody may see, "暗牌", "face down". */
export function tileName(code, lang) {
  const names = NAMES[lang === "zh" ? "zh" : "en"];
  if (code === FACE_DOWN) return names.hidden;
  if (!KNOWN.has(code)) throw new RangeError(`${code} is no tile number`);
  const suit = Math.floor(code / 10) - 1;
  const rank = code % 10;
  if (suit > 2) return names.others[suit - 3][rank - 1];
  if (names.digits) return names.digits[rank - 1] + names.suits[suit];
  return `${rank} ${names.suits[suit]}${rank > 1 ? "s" : ""}`;
}

/**
 * One tile as a piece of an SVG drawing. Its box begins at x, y and is 3/4 height wide and height
 * high; with `turned` it lies on its side, and its box is height wide and 3/4 height high.
 * `glow` puts a light rim around it, `dim` makes it recede; `title` says it in words (and shows
 * them when one points at it). seat, zone and index say where it is, for tests and for styles.
 */
export function tile(code, options = {}) {
  const { height = 48, x = 0, y = 0, turned = false, dim = false, glow = false } = options;
  const { zone, seat, index, title } = options;
  const width = height * 0.75;
  const place = turned ? `translate(${x} ${y + width}) rotate(-90)` : `translate(${x} ${y})`;
  return svg`<g
    class="tile" transform=${place} opacity=${dim ? "0.45" : nothing}
    role=${title ? "img" : nothing} aria-label=${title ?? nothing}
    data-tile=${code} data-zone=${zone ?? nothing} data-seat=${seat ?? nothing}
    data-index=${index ?? nothing} data-turned=${turned ? "true" : nothing}
  >${title ? svg`<title>${title}</title>` : nothing}<use
    href=${`${SPRITE}#t${code}`} width=${width} height=${height}></use>${
      glow
        ? svg`<rect x="0" y="0" width=${width} height=${height} rx=${height / 10} fill="none"
            stroke="#ffb020" stroke-width=${Math.max(2, height / 18)}></rect>`
        : nothing
    }</g>`;
}

/**
 * Tiles beside each other as one picture of its own. `turned` is the index of the tile that lies on
 * its side, `apart` the index before which there is a gap (the tile drawn, the winning tile), `glow`
 * and `dim` are sets or arrays of indexes; zone and seat are given to every tile. A screen reader
 * hears `label`, else the names of the tiles.
 */
export function tileRow(codes, options = {}) {
  const { height = 48, lang = "en", turned = -1, apart = -1, glow = [], dim = [], zone, seat } = options;
  const glowing = new Set(glow);
  const dimmed = new Set(dim);
  const width = height * 0.75;
  const step = Math.max(1, height / 32);
  const edge = Math.max(2, height / 18) / 2;
  let x = edge;
  const drawn = codes.map((code, index) => {
    if (index === apart) x += width / 3;
    const lies = index === turned;
    const at = x;
    x += (lies ? height : width) + step;
    return tile(code, {
      height, x: at, y: lies ? edge + height - width : edge, turned: lies, zone, seat, index,
      glow: glowing.has(index), dim: dimmed.has(index), title: tileName(code, lang),
    });
  });
  const across = Math.max(x - step, edge) + edge;
  const down = height + 2 * edge;
  const label = options.label ?? codes.map((code) => tileName(code, lang)).join(lang === "zh" ? "、" : ", ");
  return html`<svg class="tiles" role="img" aria-label=${label} width=${across} height=${down}
    viewBox=${`0 0 ${across} ${down}`}>${drawn}</svg>`;
}

const PROBLEMS = {
  NO_RANK: {
    en: ({ sign, place }) => `There is no number before “${sign}” (sign ${place + 1}).`,
    zh: ({ sign, place }) => `第 ${place + 1} 个字符“${sign}”前缺少数字。`,
  },
  NO_SUCH_TILE: {
    en: ({ sign, place }) => `There is no tile ${sign} (sign ${place + 1}).`,
    zh: ({ sign, place }) => `没有 ${sign} 这张牌（第 ${place + 1} 个字符）。`,
  },
  UNEXPECTED: {
    en: ({ sign, place }) => `“${sign}” (sign ${place + 1}) does not belong here: write numbers, then m, p, s, z or f.`,
    zh: ({ sign, place }) => `第 ${place + 1} 个字符“${sign}”无法识别：先写数字，再写 m、p、s、z 或 f。`,
  },
  NO_SUIT: {
    en: ({ place }) => `The last numbers (from sign ${place + 1}) have no suit: end with m, p, s, z or f.`,
    zh: ({ place }) => `从第 ${place + 1} 个字符起的数字缺少花色：请以 m、p、s、z 或 f 结尾。`,
  },
};

/** A text that is no tiles: `place` is the sign (from 0) at which it stops being so. */
export class NotTiles extends Error {
  constructor(reason, place, sign) {
    super(PROBLEMS[reason].en({ place, sign }));
    Object.assign(this, { name: "NotTiles", reason, place, sign });
  }

  /** What is wrong, for the one who wrote it. */
  told(lang) {
    return PROBLEMS[this.reason][lang === "zh" ? "zh" : "en"](this);
  }
}

/** The codes of a text such as "123m 55z", in its order, as fangcheng_client.notation; throws NotTiles. */
export function parseTiles(text) {
  const tiles = [];
  let ranks = [];
  [...text].forEach((sign, place) => {
    if (sign >= "0" && sign <= "9") {
      ranks.push([Number(sign), place]);
    } else if (sign in RANKS) {
      if (!ranks.length) throw new NotTiles("NO_RANK", place, sign);
      for (const [rank, at] of ranks) {
        if (rank < 1 || rank > RANKS[sign]) throw new NotTiles("NO_SUCH_TILE", at, `${rank}${sign}`);
        tiles.push((SUITS.indexOf(sign) + 1) * 10 + rank);
      }
      ranks = [];
    } else if (sign === "?" && !ranks.length) {
      tiles.push(FACE_DOWN);
    } else if (ranks.length || sign.trim()) {
      throw new NotTiles("UNEXPECTED", place, sign);
    }
  });
  if (ranks.length) throw new NotTiles("NO_SUIT", ranks[0][1], "");
  return tiles;
}

/** The text of codes in their order, neighbours of a suit sharing its letter: "123m55z". */
export function formatTiles(codes) {
  let text = "";
  let suit = "";
  for (const code of codes) {
    if (!KNOWN.has(code)) throw new RangeError(`${code} is no tile number`);
    const own = code === FACE_DOWN ? "" : SUITS[Math.floor(code / 10) - 1];
    if (suit && suit !== own) text += suit;
    text += own ? code % 10 : "?";
    suit = own;
  }
  return text + suit;
}

/** The codes sorted as players sort a hand; what is face down comes last. */
export function order(codes) {
  return [...codes].sort((a, b) => (a || Infinity) - (b || Infinity) || 0);
}
