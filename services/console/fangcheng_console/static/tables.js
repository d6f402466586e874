// The live tables as the lobby is told of them: kept, filtered, counted and sorted.

// What a table is told of without while it is so; see lobby.py.
const USUAL = {
  pool: "",
  mode: "",
  labels: {},
  hands: 0,
  spectators: 0,
  closed: "",
  troubles: {},
  away: [],
  trustees: [],
  bots: [],
  names: [],
  standings: [0, 0, 0, 0],
};

// Kinds of trouble, the worst first: what stands still, what is owed, what is only unusual.
export const TROUBLES = [
  "stuck",
  "parked",
  "wallet",
  "evaluator",
  "taken_over",
  "trustee",
  "away",
  "vacant",
];

export const PHASES = ["before_deal", "playing", "between_hands", "closed"];

// The filters that stand in the address, and the empty one of each.
export const NO_FILTER = { rule_set: "", pool: "", phase: "", trouble: "", q: "", sort: "newest" };
const FACETS = ["rule_set", "pool", "phase", "trouble"];

// Ways to sort: what is compared, the smallest first. Equal ones stand as they were created.
const SORTS = {
  newest: (table) => -table.created,
  oldest: (table) => table.created,
  trouble: (table) => (table.kinds.length ? TROUBLES.indexOf(table.kinds[0]) : TROUBLES.length),
  hand: (table) => -table.hand,
  wall: (table) => (table.phase === "playing" ? table.wall : Number.POSITIVE_INFINITY),
  swing: (table) => -Math.max(...table.standings.map(Math.abs)),
  spectators: (table) => -table.spectators,
};
export const SORT_NAMES = Object.keys(SORTS);

export class LiveTables {
  constructor() {
    this.byNumber = new Map();
  }

  // Takes in a message of the stream: everything, or what has changed.
  apply(message) {
    if (message.full) this.byNumber.clear();
    for (const change of message.tables) {
      const known = this.byNumber.get(change.n) ?? { ...USUAL };
      // A new object: what was drawn of the old one is still compared with it.
      const table = { ...known, ...change };
      if (change.players || change.names || change.labels || change.pool || !known.text) table.text = searched(table);
      table.kinds = kindsOf(table);
      this.byNumber.set(change.n, table);
    }
    for (const number of message.gone ?? []) this.byNumber.delete(number);
  }

  get size() {
    return this.byNumber.size;
  }

  // The tables that pass a filter, in its order; and of each facet how many there would be with each
  // of its values, all other filters being as they are.
  look(filter) {
    const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = Object.fromEntries(FACETS.map((facet) => [facet, new Map()]));
    const totals = Object.fromEntries(FACETS.map((facet) => [facet, 0]));
    const passed = [];
    for (const table of this.byNumber.values()) {
      if (!words.every((word) => table.text.includes(word))) continue;
      const failed = FACETS.filter((facet) => filter[facet] && !has(table, facet, filter[facet]));
      if (failed.length === 0) passed.push(table);
      for (const facet of failed.length === 0 ? FACETS : failed.length === 1 ? failed : []) {
        totals[facet] += 1;
        for (const value of valuesOf(table, facet)) counts[facet].set(value, (counts[facet].get(value) ?? 0) + 1);
      }
    }
    return { tables: sorted(passed, filter.sort), counts, totals };
  }
}

function valuesOf(table, facet) {
  if (facet !== "trouble") return table[facet] ? [table[facet]] : [];
  return table.kinds.length ? [...table.kinds, "any"] : [];
}

function has(table, facet, value) {
  return valuesOf(table, facet).includes(value);
}

function kindsOf(table) {
  return TROUBLES.filter(
    (kind) =>
      kind in table.troubles ||
      (kind === "trustee" && table.trustees.length > 0) ||
      (kind === "away" && table.away.length > 0) ||
      (kind === "vacant" && table.phase !== "closed" && table.players.includes("")),
  );
}

// What the words of a search are looked for in.
function searched(table) {
  const labels = Object.entries(table.labels).map(([key, value]) => `${key}=${value}`);
  return [table.id, table.rule_set, table.pool, ...table.players, ...table.names, ...labels].join("\n").toLowerCase();
}

function sorted(tables, sort) {
  const by = SORTS[sort] ?? SORTS.newest;
  return tables
    .map((table) => [by(table), table])
    .sort(([a, one], [b, other]) => a - b || other.created - one.created || one.n - other.n)
    .map(([, table]) => table);
}

// The filter that an address says, and the address of a filter.
export function filterOf(search) {
  const said = new URLSearchParams(search);
  const filter = { ...NO_FILTER };
  for (const name of Object.keys(filter)) filter[name] = said.get(name) ?? filter[name];
  if (!(filter.sort in SORTS)) filter.sort = NO_FILTER.sort;
  return filter;
}

export function searchOf(filter) {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== NO_FILTER[name]) said.set(name, value);
  const text = said.toString();
  return text ? `?${text}` : "";
}

// What a seat's player is called.
export function nameAt(table, seat) {
  return table.names[seat] ?? table.players[seat];
}

// The wind of a seat, from the dealer on: 0 east, 1 south, 2 west, 3 north.
export function windAt(table, seat) {
  return (seat - table.dealer + 4) % 4;
}
