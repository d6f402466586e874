// Checks where the tiles of a finished hand came from, in the reader's own browser: nothing but
// SHA-256 (WebCrypto) and the algorithm of docs/fairness.md. Nothing here asks a server.
//
//   const checks = await verify({record, commitment, tiles});
//   checks.every((check) => check.holds !== false)
//
// A record is HandRecord as protobuf JSON with the fields' own names; fields at their default may be
// left out, and it may have been written by anybody: what is wrong with it is a check that fails.

const LABEL = "fangcheng/wall/v1";
const DEALT = 53;
const MOST_HANDS = 1_000; // of a table

// WebCrypto exists in secure contexts alone: https, or localhost.
export const available = () => Boolean(globalThis.crypto?.subtle);

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export function fromHex(text) {
  if (!/^(?:[0-9a-f]{2})*$/i.test(text)) throw new Error(`${text} is not hexadecimal`);
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export const fromBase64 = (text = "") => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));

const sha = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

export async function hashed(bytes, times) {
  for (let time = 0; time < times; time += 1) bytes = await sha(bytes);
  return bytes;
}

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function integer(value, bytes) {
  const out = new Uint8Array(bytes);
  let left = BigInt(value);
  for (let at = bytes - 1; at >= 0; at -= 1) {
    out[at] = Number(left & 255n);
    left >>= 8n;
  }
  return out;
}

// The seed of a hand's shuffle (docs/fairness.md, 2).
export function seedOf(secret, entropy, tableId, handNumber) {
  const text = new TextEncoder();
  const name = text.encode(tableId);
  const shares = entropy.flatMap((share) => [integer(share.length, 4), share]);
  return sha(
    joined(text.encode(LABEL), secret, ...shares, integer(name.length, 4), name, integer(handNumber, 8)),
  );
}

// The wall and the dice that follow from a seed (3 to 6). `tiles`: the rule set's, in any order.
export async function shuffled(seed, tiles, dice) {
  let block = 0;
  let words = [];
  async function below(n) {
    const limit = 2 ** 32 - (2 ** 32 % n);
    for (;;) {
      if (!words.length) {
        const view = new DataView((await sha(joined(seed, integer(block, 8)))).buffer);
        words = Array.from({ length: 8 }, (_, at) => view.getUint32(4 * at));
        block += 1;
      }
      const word = words.shift();
      if (word < limit) return word % n;
    }
  }
  const wall = [...tiles].sort((one, other) => one - other);
  for (let i = wall.length - 1; i > 0; i -= 1) {
    const j = await below(i + 1);
    [wall[i], wall[j]] = [wall[j], wall[i]];
  }
  const thrown = [];
  for (let die = 0; die < dice; die += 1) thrown.push(1 + (await below(6)));
  return { wall, dice: thrown };
}

// Which places of the wall each seat is dealt, seat 0 first (7).
function dealtPlaces(dealer) {
  const seats = [[], [], [], []];
  for (let turn = 0; turn < 4; turn += 1) {
    const places = seats[(dealer + turn) % 4];
    for (let round = 0; round < 3; round += 1) {
      for (let tile = 0; tile < 4; tile += 1) places.push(16 * round + 4 * turn + tile);
    }
    places.push(48 + turn);
  }
  seats[dealer].push(DEALT - 1);
  return seats;
}

const ascending = (tiles) => [...tiles].sort((one, other) => one - other);
const same = (one, other) => one.length === other.length && one.every((tile, at) => tile === other[at]);
const kindOf = (event, kind) => event[kind] ?? null;

// Compares what was dealt, turned up and drawn with the wall (7, 8). Returns {deal, draws}: each
// {holds, …what was counted, or the first place that differs}.
function followed(record, wall, dealer) {
  let front = DEALT;
  let back = wall.length - 1;
  let drawnBack = 0;
  let deal = null;
  let wrong = null;
  let isOver = false;
  const turned = new Set();
  for (const event of record.events ?? []) {
    const dealt = kindOf(event, "dealt");
    const drawn = kindOf(event, "drawn");
    const treasure = kindOf(event, "treasure_turned");
    if (dealt) {
      const differs = dealtPlaces(dealer).findIndex(
        (places, seat) =>
          !same(ascending(dealt.hands?.[seat]?.tiles ?? []), ascending(places.map((at) => wall[at]))),
      );
      deal = differs < 0 ? { holds: deal === null, tiles: DEALT } : { holds: false, seat: differs };
    } else if (treasure && Number.isInteger(treasure.index)) {
      const { index, tile } = treasure;
      if (wall[index] !== tile) wrong ??= { place: index, found: tile, expected: wall[index] ?? 0 };
      turned.add(index);
    } else if (drawn) {
      const fromBack = drawn.origin === "back" || drawn.origin === "flower";
      while (fromBack && turned.has(back)) back -= 1;
      const place = fromBack ? back-- : front++;
      drawnBack += fromBack ? 1 : 0;
      if (wall[place] !== drawn.tile) {
        wrong ??= { place, found: drawn.tile ?? 0, expected: wall[place] ?? 0 };
      }
    }
    const end = kindOf(event, "hand_ended")?.hand;
    isOver ||= Boolean(end?.escape || end?.dissolved);
  }
  const counted = { front: front - DEALT, back: drawnBack, turned: turned.size };
  if (front + drawnBack > wall.length) wrong ??= { place: wall.length, found: 0, expected: 0 };
  return {
    // Who leaves before the deal ends the hand without one.
    deal: deal ?? { holds: isOver && !counted.front && !counted.back, tiles: 0 },
    draws: wrong ? { holds: false, ...wrong } : { holds: true, ...counted },
  };
}

// All checks of a record, in the order of docs/fairness.md: [{id, holds, facts}]. `holds` is null
// where something that the check needs is not known.
//
// record: HandRecord as JSON. commitment: what the table itself told when it was made, 32 bytes, or
// null. tiles: what the rule set is played with (RuleSet.tiles), or null.
export async function verify({ record, commitment, tiles }) {
  const checks = [];
  const told = (id, holds, facts = {}) => checks.push({ id, holds, facts });
  try {
    await checked(record, commitment, tiles, told);
  } catch (error) {
    told("record", false, { error: String(error?.message ?? error) });
  }
  return checks;
}

async function checked(record, commitment, tiles, told) {
  const number = Number(record.hand_number ?? 0);
  const secret = fromBase64(record.secret);
  const entropy = (record.entropy ?? []).map(fromBase64);
  const named = hex(fromBase64(record.table_commitment));
  const wall = record.wall ?? [];
  const dice = record.dice ?? [];
  const started = (record.events ?? []).map((event) => event.hand_started).find(Boolean);
  if (!(Number.isInteger(number) && number >= 1 && number <= MOST_HANDS)) {
    throw new Error(`there is no hand ${record.hand_number}`);
  }
  if (secret.length !== 32) throw new Error(`the secret has ${secret.length} bytes, not 32`);
  if (entropy.length !== 4) throw new Error(`${entropy.length} seats have entropy, not 4`);
  if (!started) throw new Error("the record has no beginning of a hand");

  const found = hex(await hashed(secret, number));
  const expected = commitment ? hex(commitment) : named;
  told("chain", commitment ? found === expected : null, { times: number, secret: hex(secret), found, expected });
  told("named", commitment ? named === expected : null, { found: named, expected });

  const own = hex(await sha(secret));
  const promised = hex(fromBase64(started.commitment));
  told("hand", own === promised, { found: own, expected: promised });
  const shares = entropy.map(hex);
  const shown = (started.entropy ?? []).map((share) => hex(fromBase64(share)));
  told("entropy", same(shares, shown), { found: shares.join(" · "), expected: shown.join(" · ") });

  told("tiles", tiles ? same(ascending(wall), ascending(tiles)) : null, {
    found: wall.length,
    expected: tiles?.length ?? 0,
  });
  const seed = await seedOf(secret, entropy, record.table_id ?? "", number);
  const follows = await shuffled(seed, tiles ?? wall, dice.length);
  const differs = follows.wall.findIndex((tile, place) => tile !== wall[place]);
  told("wall", differs < 0 && wall.length === follows.wall.length, {
    seed: hex(seed),
    tiles: follows.wall.length,
    place: differs,
    found: wall[differs] ?? 0,
    expected: follows.wall[differs] ?? 0,
  });
  const thrown = started.dice ?? [];
  told("dice", same(dice, follows.dice) && same(dice, thrown), {
    found: dice.join(" "),
    expected: follows.dice.join(" "),
  });
  const steps = followed(record, follows.wall, started.dealer ?? 0);
  for (const [id, { holds, ...facts }] of Object.entries(steps)) told(id, holds, facts);
}
