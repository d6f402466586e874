// A hand that somebody tries, as plain data, and the same as the query of a link.
//
// Everything that decides an answer stands in the query, so that a link shows what its sender saw.
// Tiles stay the text that was typed, right or wrong: `parsed` reads it.

import { NotTiles, formatTiles, order, parseTiles } from "../tiles.js";

/** Kinds of melds by the word that stands for them in a link. */
export const MELDS = {
  chi: "chi",
  pong: "pong",
  exposed: "exposed_kong",
  added: "added_kong",
  concealed: "concealed_kong",
  whirlwind: "whirlwind",
};
const WORDS = Object.fromEntries(Object.entries(MELDS).map(([word, kind]) => [kind, word]));

export const ENDS = ["win", "draw", "eight_flowers", "escape"];
export const BYS = ["self_draw", "discard", "rob_kong"];
export const KONGS = ["exposed", "added", "concealed"];
const MOMENTS = ["on_deal", "after_flower", "discard_after_kong"];

export function emptySeat() {
  return { hand: "", melds: [], flowers: "", declared: "", piao: 0, first: 0 };
}

export function emptyState() {
  return {
    mode: "analyze",
    rules: "",
    revision: 0,
    options: {}, // by id, only those that differ from the default
    seat: 0, // which one is being put together
    seats: [0, 1, 2, 3].map(emptySeat),
    dealer: 0,
    end: "win",
    winners: [0],
    win: 0, // the tile that was won on
    by: "self_draw",
    from: null,
    afterKong: "",
    kongFrom: null,
    on_deal: false,
    after_flower: false,
    discard_after_kong: false,
    firstRound: [],
    leaver: 0, // who escaped, or laid down all the flowers
    drawnBefore: 0,
    treasure: 0,
    falseWins: "", // seats, one digit a call: "11" is seat 1 twice
  };
}

/** The tiles of a text, `{codes, problem}`; codes is empty where it cannot be read. */
export function parsed(text) {
  try {
    return { codes: parseTiles(text), problem: null };
  } catch (error) {
    if (!(error instanceof NotTiles)) throw error;
    return { codes: [], problem: error };
  }
}

/** Tiles that a seat has in hand; none where its text cannot be read. */
export const concealed = (seat) => parsed(seat.hand).codes;

/** How many tiles a hand has, each meld counted as three. */
export const size = (seat) => concealed(seat).length + 3 * seat.melds.length;

/** A seat with one more tile, or one less (the last of them that is like it). */
export function withTile(seat, code, key = "hand") {
  return { ...seat, [key]: formatTiles(order([...parsed(seat[key]).codes, code])) };
}

export function withoutTiles(seat, tiles, key = "hand") {
  const codes = parsed(seat[key]).codes;
  for (const tile of tiles) {
    const at = codes.lastIndexOf(tile);
    if (at >= 0) codes.splice(at, 1);
  }
  return { ...seat, [key]: formatTiles(codes) };
}

/** The tiles of a meld of this kind that is named by its lowest tile; null where there is none. */
export function meldOf(kind, tile) {
  if (kind === "chi") {
    const fits = tile < 40 && tile % 10 <= 7;
    return fits ? [tile, tile + 1, tile + 2] : null;
  }
  if (kind === "whirlwind") return tile >= 45 && tile <= 47 ? [45, 46, 47] : null;
  if (tile > 50) return null;
  return Array(kind === "pong" ? 3 : 4).fill(tile);
}

/** How many of each tile are taken: by one seat in an analysis, by all of them in a score. */
export function taken(state) {
  const counts = new Map();
  const seats = state.mode === "score" ? state.seats : [state.seats[state.seat]];
  const add = (code) => counts.set(code, (counts.get(code) ?? 0) + 1);
  for (const seat of seats) {
    concealed(seat).forEach(add);
    parsed(seat.flowers).codes.forEach(add);
    for (const meld of seat.melds) meld.tiles.forEach(add);
  }
  if (state.mode === "score") {
    if (state.end === "win" && state.win) add(state.win);
    if (state.treasure) add(state.treasure);
  }
  return counts;
}

const numbered = (name, seat) => (seat ? `${name}${seat}` : name);

function meldText(meld) {
  const parts = [WORDS[meld.kind], formatTiles(meld.tiles)];
  if (meld.from !== null) parts.push(String(meld.from));
  if (meld.treasure) parts.push("treasure");
  return parts.join("-");
}

function meldFrom(text) {
  const [word, tiles, ...rest] = text.split("-");
  const { codes, problem } = parsed(tiles ?? "");
  if (!Object.hasOwn(MELDS, word) || problem || codes.length < 3) return null;
  const from = rest.find((one) => /^[0-3]$/.test(one));
  return {
    kind: MELDS[word],
    tiles: order(codes),
    from: from === undefined ? null : Number(from),
    treasure: rest.includes("treasure"),
  };
}

/** The query of a link to this state; what is as it begins is left out. */
export function toQuery(state) {
  const query = new URLSearchParams();
  const begin = emptyState();
  const put = (key, value, usual) => {
    if (value !== usual) query.set(key, String(value));
  };
  put("mode", state.mode, begin.mode);
  put("rules", state.rules, "");
  put("revision", state.revision, 0);
  for (const id of Object.keys(state.options).sort()) query.set(`o.${id}`, String(state.options[id]));
  put("seat", state.seat, 0);
  state.seats.forEach((seat, number) => {
    put(numbered("hand", number), seat.hand, "");
    put(numbered("melds", number), seat.melds.map(meldText).join("."), "");
    put(numbered("flowers", number), seat.flowers, "");
    put(numbered("declared", number), seat.declared, "");
    put(numbered("piao", number), seat.piao, 0);
    if (seat.first) query.set(numbered("first", number), formatTiles([seat.first]));
  });
  put("dealer", state.dealer, 0);
  put("end", state.end, begin.end);
  put("winners", state.winners.join("."), "0");
  if (state.win) query.set("win", formatTiles([state.win]));
  put("by", state.by, begin.by);
  put("from", state.from, null);
  put("kong", state.afterKong, "");
  put("kongfrom", state.kongFrom, null);
  put("moment", MOMENTS.filter((moment) => state[moment]).join("."), "");
  put("first_round", state.firstRound.join("."), "");
  put("leaver", state.leaver, 0);
  put("drawn", state.drawnBefore, 0);
  if (state.treasure) query.set("treasure", formatTiles([state.treasure]));
  put("false_wins", state.falseWins, "");
  return query.toString();
}

/** The state of a link's query. `lost`: the keys that could not be read and were left out. */
export function fromQuery(text) {
  const query = new URLSearchParams(text);
  const state = emptyState();
  const lost = [];
  const take = (key, read, keep) => {
    const value = query.get(key);
    if (value === null) return;
    const found = read(value);
    if (found === undefined) lost.push(key);
    else keep(found);
  };
  const among = (words) => (value) => (words.includes(value) ? value : undefined);
  const whole = (most) => (value) => (/^\d{1,9}$/.test(value) && Number(value) <= most ? Number(value) : undefined);
  const seats = (value) => {
    const found = value.split(".");
    return found.every((one) => /^[0-3]$/.test(one)) ? found.map(Number) : undefined;
  };
  const tile = (value) => {
    const { codes } = parsed(value);
    return codes.length === 1 && codes[0] ? codes[0] : undefined;
  };
  const asIs = (value) => value.slice(0, 120);
  const set = (key) => (value) => {
    state[key] = value;
  };
  take("mode", among(["analyze", "score"]), set("mode"));
  take("rules", asIs, set("rules"));
  take("revision", whole(4294967295), set("revision"));
  for (const [key, value] of query) {
    if (!key.startsWith("o.")) continue;
    const typed = { true: true, false: false }[value] ?? (/^-?\d{1,15}$/.test(value) ? Number(value) : value);
    state.options[key.slice(2)] = typed;
  }
  take("seat", whole(3), set("seat"));
  state.seats.forEach((seat, number) => {
    const into = (key) => (value) => {
      seat[key] = value;
    };
    const name = (key) => numbered(key, number);
    take(name("hand"), asIs, into("hand"));
    take(name("melds"), (value) => {
      const melds = value.split(".").map(meldFrom);
      return melds.includes(null) || melds.length > 4 ? undefined : melds;
    }, into("melds"));
    take(name("flowers"), asIs, into("flowers"));
    take(name("declared"), asIs, into("declared"));
    take(name("piao"), whole(1000), into("piao"));
    take(name("first"), tile, into("first"));
  });
  take("dealer", whole(3), set("dealer"));
  take("end", among(ENDS), set("end"));
  take("winners", seats, set("winners"));
  take("win", tile, set("win"));
  take("by", among(BYS), set("by"));
  take("from", whole(3), set("from"));
  take("kong", among(KONGS), set("afterKong"));
  take("kongfrom", whole(3), set("kongFrom"));
  take("moment", (value) => {
    const found = value.split(".");
    return found.every((one) => MOMENTS.includes(one)) ? found : undefined;
  }, (found) => {
    for (const moment of found) state[moment] = true;
  });
  take("first_round", seats, set("firstRound"));
  take("leaver", whole(3), set("leaver"));
  take("drawn", whole(100000), set("drawnBefore"));
  take("treasure", tile, set("treasure"));
  take("false_wins", (value) => (/^[0-3]{1,50}$/.test(value) ? value : undefined), set("falseWins"));
  return { state, lost };
}

function rulesOf(state, ruleSet) {
  const options = {};
  for (const spec of ruleSet?.options ?? []) {
    if (!(spec.id in state.options)) continue;
    const kind = { bool: "boolean", integer: "integer", choice: "text" }[spec.type];
    options[spec.id] = { [kind]: state.options[spec.id] };
  }
  // What the rule set does not know is sent as it is: the evaluator says what is wrong with it.
  for (const [id, value] of Object.entries(state.options)) {
    options[id] ??= { [{ boolean: "boolean", number: "integer" }[typeof value] ?? "text"]: value };
  }
  return { id: state.rules, revision: state.revision, options };
}

const wireMeld = (meld) => ({
  kind: meld.kind,
  tiles: meld.tiles,
  ...(meld.from === null ? {} : { from_seat: meld.from }),
  treasure: meld.treasure,
});

/** AnalyzeRequest of the seat that is being put together. */
export function analyzeRequest(state, ruleSet) {
  const seat = state.seats[state.seat];
  return {
    rules: rulesOf(state, ruleSet),
    hand: { concealed: concealed(seat), melds: seat.melds.map(wireMeld) },
    flowers: parsed(seat.flowers).codes,
  };
}

/** ScoreRequest of the finished hand. */
export function scoreRequest(state, ruleSet) {
  const seats = state.seats.map((seat) => ({
    concealed: concealed(seat),
    melds: seat.melds.map(wireMeld),
    declared: seat.declared,
    piao: seat.piao,
    first_discard: seat.first,
    flowers: parsed(seat.flowers).codes,
  }));
  return {
    rules: rulesOf(state, ruleSet),
    hand: {
      dealer: state.dealer,
      seats,
      ...endOf(state),
      drawn_hands_before: state.drawnBefore,
      treasure: state.treasure,
      false_wins: [...state.falseWins].map(Number),
    },
  };
}

function endOf(state) {
  if (state.end === "draw") return { draw: {} };
  if (state.end !== "win") return { [state.end]: { seat: state.leaver } };
  const isDrawn = state.by === "self_draw";
  return {
    win: {
      winners: state.winners,
      tile: state.win,
      by: state.by,
      ...(isDrawn || state.from === null ? {} : { from_seat: state.from }),
      after_kong: isDrawn ? state.afterKong : "",
      ...(isDrawn && state.afterKong === "exposed" && state.kongFrom !== null ? { kong_from_seat: state.kongFrom } : {}),
      discard_after_kong: state.by === "discard" && state.discard_after_kong,
      on_deal: isDrawn && state.on_deal,
      after_flower: isDrawn && state.after_flower,
      first_round: state.firstRound.filter((seat) => state.winners.includes(seat)),
    },
  };
}

/** What is still missing before there is anything to ask, as a key and its values; null: nothing. */
export function missing(state) {
  if (state.mode === "analyze") {
    const seat = state.seats[state.seat];
    const tiles = size(seat);
    if (tiles === 13 || tiles === 14) return null;
    return { key: tiles > 14 ? "try.too_many" : tiles ? "try.more_tiles" : "try.begin", params: { tiles, left: 13 - tiles } };
  }
  if (state.end !== "win") return null;
  if (!state.winners.length) return { key: "try.no_winner", params: {} };
  for (const seat of state.winners) {
    const tiles = size(state.seats[seat]);
    if (tiles !== 13) return { key: "try.winner_tiles", params: { seat, tiles } };
  }
  if (!state.win) return { key: "try.no_win_tile", params: {} };
  if (state.by !== "self_draw" && state.from === null) return { key: "try.no_from", params: {} };
  return null;
}

/** Texts that cannot be read, by the field that they are of; while there are any, nothing is asked. */
export function unreadable(state) {
  const found = {};
  state.seats.forEach((seat, number) => {
    if (state.mode === "analyze" && number !== state.seat) return;
    for (const key of ["hand", "flowers"]) {
      const { codes, problem } = parsed(seat[key]);
      if (problem) found[fieldOf(state, number, key)] = problem;
      else if (codes.includes(0)) found[fieldOf(state, number, key)] = new NotTiles("UNEXPECTED", seat[key].indexOf("?"), "?");
    }
  });
  return found;
}

/** The evaluator's name of a seat's field in this mode. */
export function fieldOf(state, number, key) {
  const name = { hand: "concealed", first: "first_discard" }[key] ?? key;
  if (state.mode === "score") return `hand.seats[${number}].${name}`;
  return key === "flowers" ? "flowers" : `hand.${name}`;
}

/** The text of tiles as a player sorts them. */
export const textOf = (codes) => formatTiles(order(codes));
