// A table from above: felt with four sides, the seat of the perspective at the bottom, and a plate
// beside each side with who sits there. Live page, revealed view and replay draw with it.
//
//   drawTable(state, {perspective, version, call, ask})   as a template
//
// Every tile says what it is by data-tile, data-seat, data-zone and data-index (its place in the
// state's list; of a meld "1.2", the third tile of the second meld).

import { add, has, language, number, t } from "./i18n.js";
import { classMap, html, nothing, svg } from "./lit.js";
import { signed, tone } from "./money.js";
import { tile, tileName } from "./tiles.js";
import words from "./table.i18n.js";

add(words);

const SEATS = [0, 1, 2, 3];
const SIDES = ["near", "right", "far", "left"];
const ACROSS = 3 / 4;
const RIVER_ROW = 6;
const GAP = 1.5;

// Half the felt's width and what lies on it, from the rim inwards; tiles by their height.
// The middle is as wide as a river, so that two of them never meet at a corner.
const WIDE = { half: 480, rim: 12, hand: 66, meld: 57, flower: 36, wall: 398, stack: 19, river: 58, centre: 126 };
const NARROW = { half: 352, rim: 8, hand: 58, meld: 50, flower: 32, wall: 0, stack: 0, river: 43, centre: 92 };

// Which side a seat is drawn at: 0 near, 1 right (who plays next), 2 far, 3 left.
const sideOf = (seat, perspective) => (seat - perspective + 4) % 4;

const windOf = (seat, dealer) => t(`board.wind.${(seat - dealer + 4) % 4}`);
export const nameOf = (state, seat) => state.seats[seat].name || t("board.nobody");

// What was declared (听, 明楼), as the rule set calls it.
export function declaredName(id, ruleSet) {
  const found = ruleSet?.declarations?.find((one) => one.id === id);
  if (found) return language() === "zh" ? found.name_zh : found.name_en;
  return has(`board.declared.${id}`) ? t(`board.declared.${id}`) : id.replaceAll("_", " ");
}

/**
 * The table as `state` tells it. `call` is what was just called: {seat, text}; `ask(seat)` gives what
 * else stands on a seat's plate; `ruleSet` describes what is played, for the names of declarations.
 * `linked`: players' names lead to their wallets.
 */
export function drawTable(state, options = {}) {
  const { perspective = 0, narrow = false, version, call = null, ask = () => nothing, ruleSet = null, linked = true } = options;
  const size = narrow ? NARROW : WIDE;
  const { half } = size;
  return html`<div class=${classMap({ board: true, narrow })}>
    ${SEATS.map((seat) => plate(state, seat, SIDES[sideOf(seat, perspective)], { ask, ruleSet, linked }))}
    <svg
      class="felt" viewBox=${`${-half} ${-half} ${2 * half} ${2 * half}`} role="group" aria-label=${summary(state)}
      data-table=${state.table_id} data-version=${version ?? nothing} data-number=${state.number}
      data-turn=${state.turn ?? "none"} data-wall=${state.wall} data-dealer=${state.dealer}
      data-hand=${state.hand_number} data-phase=${state.phase}
    >
      <rect class="felt-edge" x=${-half + 4} y=${-half + 4} width=${2 * half - 8} height=${2 * half - 8} rx="18"></rect>
      ${size.wall ? wall(state, size, perspective) : nothing}
      ${middle(state, size)}
      ${SEATS.map((seat) => side(state, seat, sideOf(seat, perspective), size))}
      ${call ? called(call, sideOf(call.seat, perspective), size) : nothing}
    </svg>
  </div>`;
}

// The table in a sentence, for who does not see it.
export function summary(state) {
  if (!state.hand_number) return t("board.summary.unplayed");
  const said = [t("board.summary", { hand: state.hand_number, wall: state.wall, dealer: nameOf(state, state.dealer) })];
  if (state.turn !== null) said.push(t("board.summary.turn", { name: nameOf(state, state.turn) }));
  return said.join(" ");
}

// Plates.

function plate(state, seat, place, { ask, ruleSet, linked }) {
  const known = state.seats[seat];
  const isTurn = state.turn === seat;
  const isDealer = state.hand_number > 0 && seat === state.dealer;
  return html`<section
    class=${classMap({ plate: true, [place]: true, turn: isTurn })} data-plate=${seat}
    aria-label=${t("board.seat", { name: nameOf(state, seat), wind: windOf(seat, state.dealer) })}
  >
    <span class=${classMap({ wind: true, dealer: isDealer })} title=${isDealer ? t("board.dealer") : nothing}>${windOf(seat, state.dealer)}</span>
    <span class="plate-name">${
      known.player_id
        ? !linked ? known.name : html`<a href=${`/wallet/${encodeURIComponent(known.player_id)}`} title=${known.player_id}>${known.name}</a>`
        : html`<em>${t("board.vacant")}</em>`
    }</span>
    <span class="plate-score" data-standing=${known.standing}>${
      state.starting_chips ? html`<span class="chips" title=${t("board.chips")}>${number(known.chips)}</span> ` : nothing
    }<span class=${tone(known.standing) || "muted"}>${signed(known.standing)}</span></span>
    <span class="plate-badges">${badges(state, seat, ruleSet)}</span>
    ${ask(seat)}
  </section>`;
}

function badges(state, seat, ruleSet) {
  const known = state.seats[seat];
  const badge = (kind, text, about) =>
    html`<span class=${`badge ${kind}`} data-badge=${about} title=${has(`board.about.${about}`) ? t(`board.about.${about}`) : nothing}>${text}</span>`;
  return [
    seat === state.dealer && state.hand_number ? badge("accent", t("board.dealer.mark"), "dealer") : nothing,
    known.declared ? badge("warn", declaredName(known.declared, ruleSet), "declared") : nothing,
    known.piao ? badge("", t("board.piao", { units: known.piao }), "piao") : nothing,
    known.false_wins ? badge("bad", t("board.false_win", { times: known.false_wins }), "false_win") : nothing,
    known.trustee ? badge("warn", t("board.trustee"), "trustee") : nothing,
    known.player_id && !known.connected ? badge("bad", t("board.away"), "away") : nothing,
    known.leaving ? badge("warn", t("board.leaving"), "leaving") : nothing,
    state.ready_check && known.ready ? badge("good", t("board.ready"), "ready") : nothing,
    state.vote?.agreed.includes(seat) ? badge("warn", t("board.agrees"), "agrees") : nothing,
  ];
}

// The felt. Each seat is drawn as if it sat at the bottom, around 0 0, and turned to its side.

function side(state, seat, place, size) {
  const known = state.seats[seat];
  return svg`<g transform=${`rotate(${-90 * place})`} data-side=${SIDES[place]}>
    ${hand(known, seat, size, place)}
    ${flowers(known, seat, size)}
    ${river(state, seat, size)}
    ${mark(state, seat, size)}
  </g>`;
}

// Concealed tiles sorted, the one just drawn apart, and the melds to the right of them.
function hand(known, seat, size, place) {
  const height = size.hand;
  const step = height * ACROSS + GAP;
  const isDrawn = known.drawn !== null && known.concealed.length > 0;
  const last = known.concealed.length - 1;
  const held = known.concealed
    .map((code, index) => ({ code, index }))
    .filter(({ index }) => !(isDrawn && index === last))
    .sort((a, b) => (a.code || 99) - (b.code || 99) || a.index - b.index);
  const laid = known.melds.map((meld) => meldTiles(meld, (seat - (meld.from_seat ?? seat) + 4) % 4, size.meld));
  // A place is kept for the tile drawn, so that nothing moves when it comes and goes.
  const own = held.length * step + (held.length % 3 === 1 || isDrawn ? step + 12 : 0);
  const melds = laid.reduce((sum, one) => sum + one.width + 12, laid.length ? 10 : 0);
  // The row leaves the corner at its right to the next seat's.
  const room = 2 * size.half - 2 * size.rim - height - 12;
  const scale = Math.min(1, room / (own + melds));
  const left = -size.half + size.rim + 4 + Math.max(0, (room - own - melds) / 2);
  const drawn = held.map(({ code, index }, at) =>
    tile(code, { height, x: at * step, y: -height, zone: "concealed", seat, index, title: titled(code) }),
  );
  if (isDrawn) {
    const code = known.concealed[last];
    drawn.push(
      tile(code, { height, x: held.length * step + 12, y: -height, zone: "drawn", seat, index: 0, title: titled(code) }),
    );
  }
  let x = own + (laid.length ? 10 : 0);
  const lying = laid.map((one, at) => {
    const from = x;
    x += one.width + 12;
    return svg`<g transform=${`translate(${from} 0)`} data-meld=${known.melds[at].kind}>${one.draw(seat, at)}</g>`;
  });
  const rest = size.half - size.rim;
  return svg`<g class=${`hand hand-${place}`} transform=${`translate(${left} ${rest}) scale(${scale})`}>${drawn}${lying}</g>`;
}

// A meld with the claimed tile lying on its side, where it points to the seat that it came from; an
// added tile lies upon it. Of a concealed kong the outer tiles lie face down.
function meldTiles(meld, from, height) {
  const width = height * ACROSS;
  const rest = meld.tiles.map((code, index) => ({ code, index }));
  const take = (code) => rest.splice(Math.max(0, rest.findIndex((one) => one.code === code)), 1)[0];
  const pieces = [];
  if (meld.kind === "concealed_kong") {
    rest.forEach((one, at) => pieces.push({ ...one, covered: at === 0 || at === rest.length - 1 }));
  } else {
    const added = meld.kind === "added_kong" ? rest.pop() : null;
    const claimed = from && meld.claimed_tile ? take(meld.claimed_tile) : null;
    pieces.push(...rest);
    if (claimed) {
      // From the left (1 here: we play after it) at the left end, from the right at the right end.
      const at = from === 1 ? 0 : from === 2 ? 1 : pieces.length;
      pieces.splice(at, 0, { ...claimed, turned: true, added });
    } else if (added) {
      pieces.push(added);
    }
  }
  let x = 0;
  for (const piece of pieces) {
    piece.x = x;
    x += (piece.turned ? height : width) + GAP;
  }
  const draw = (seat, at) =>
    pieces.map((piece) => {
      const told = { height, x: piece.x, zone: "meld", seat };
      const put = (one, y) =>
        tile(one.code, { ...told, y, turned: Boolean(piece.turned), index: `${at}.${one.index}`, title: titled(one.code) });
      if (piece.covered) return covered(piece, { ...told, y: -height, index: `${at}.${piece.index}` });
      if (!piece.turned) return put(piece, -height);
      return [put(piece, -width), piece.added ? put(piece.added, -2 * width - GAP) : nothing];
    });
  return { width: x - GAP, draw };
}

// A tile that is known and lies face down.
function covered(piece, { height, x, y, zone, seat, index }) {
  return svg`<g class="tile" transform=${`translate(${x} ${y})`} data-tile=${piece.code} data-zone=${zone}
    data-seat=${seat} data-index=${index} data-covered="true"><use
    href="/static/tiles.svg#t0" width=${height * ACROSS} height=${height}></use></g>`;
}

function flowers(known, seat, size) {
  const height = size.flower;
  const y = size.half - size.rim - size.hand - 8 - height;
  return known.flowers.map((code, index) =>
    tile(code, {
      height,
      x: -size.half + 2 * size.rim + size.hand + 12 + index * (height * ACROSS + GAP),
      y,
      zone: "flower",
      seat,
      index,
      title: titled(code),
    }),
  );
}

function river(state, seat, size) {
  const height = size.river;
  const across = height * ACROSS + GAP;
  const lying = state.last_discard;
  const last = lying?.seat === seat ? state.seats[seat].river.length - 1 : -1;
  return svg`<g class="river" transform=${`translate(${(-RIVER_ROW * across) / 2} ${size.centre + 10})`}>${state.seats[
    seat
  ].river.map(
    (code, index) =>
      svg`<g class=${index === last ? "fresh" : ""}>${tile(code, {
        height,
        x: (index % RIVER_ROW) * across,
        y: Math.floor(index / RIVER_ROW) * (height + GAP),
        glow: index === last,
        zone: "river",
        seat,
        index,
        title: titled(code),
      })}</g>`,
  )}</g>`;
}

// The seat's wind at the middle, and whose turn it is.
function mark(state, seat, size) {
  const y = size.centre - 17;
  const isDealer = state.hand_number > 0 && seat === state.dealer;
  return svg`<g class=${classMap({ mark: true, turn: state.turn === seat, dealer: isDealer })}>
    <rect class="mark-bar" x="-46" y=${size.centre - 4} width="92" height="6" rx="3"></rect>
    <circle cx="0" cy=${y} r="12"></circle>
    <text x="0" y=${y} dy="0.36em" text-anchor="middle" font-size="15">${windOf(seat, state.dealer)}</text>
  </g>`;
}

// The middle: what is left of the wall, which hand it is, dice, treasure, and the time of the turn.
function middle(state, size) {
  const { centre } = size;
  const ring = centre - 32;
  const unit = centre / 126;
  const shown = (state.turned.length ? -24 : 6) * unit;
  return svg`<g class="middle">
    <rect x=${-centre} y=${-centre} width=${2 * centre} height=${2 * centre} rx="14"></rect>
    <circle class="ring-track" r=${ring} fill="none" stroke-width="5"></circle>
    <circle class="ring" r=${ring} fill="none" stroke-width="5" pathLength="100" stroke-dasharray="100"
      transform="rotate(-90)" data-ring=""></circle>
    <text class="wall-left" x="0" y=${shown} text-anchor="middle" font-size=${(state.turned.length ? 44 : 56) * unit}><title>${t("board.wall.left")}</title>${state.hand_number ? state.wall : ""}</text>
    <text class="hand-of" x="0" y=${shown + 24 * unit} text-anchor="middle" font-size=${17 * unit}>${handOf(state)}</text>
    ${treasure(state, unit)}
    ${dice(state, centre)}
  </g>`;
}

function handOf(state) {
  if (!state.hand_number) return t("board.unplayed");
  return state.hands
    ? t("board.hand_of", { hand: state.hand_number, hands: state.hands })
    : t("board.hand", { hand: state.hand_number });
}

// The tiles turned up on the wall (宝牌), the newest of them is the treasure, where there is one.
function treasure(state, unit) {
  const height = 56 * unit;
  const step = height * ACROSS + 3;
  const shown = state.turned.length;
  return state.turned.map((code, index) => {
    const isTreasure = index === shown - 1 && state.treasure === code;
    return tile(code, {
      height,
      x: (index - shown / 2) * step + 1.5,
      y: 10 * unit,
      dim: !isTreasure,
      glow: isTreasure,
      zone: "treasure",
      index,
      title: t(isTreasure ? "board.treasure" : "board.treasure.was", { tile: tileName(code, language()) }),
    });
  });
}

const PIPS = { 1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8] };

function dice(state, centre) {
  const size = 17;
  return state.dice.map((value, at) => {
    const [x, y] = at % 2 ? [centre - size - 7, centre - size - 7] : [-centre + 7, -centre + 7];
    return svg`<g class="die" transform=${`translate(${x} ${y})`} aria-label=${t("board.die", { value })} role="img">
      <rect width=${size} height=${size} rx="4"></rect>
      ${(PIPS[value] ?? []).map((pip) => svg`<circle cx=${4 + (pip % 3) * 4.5} cy=${4 + Math.floor(pip / 3) * 4.5} r="1.7"></circle>`)}
    </g>`;
  });
}

// The wall as stacks of two around the middle, taken from the dealer's side on.
function wall(state, size, perspective) {
  if (!state.wall_total || state.ended) return nothing;
  const stacks = Math.ceil(state.wall_total / 2);
  const perSide = Math.ceil(stacks / 4);
  const gone = state.wall_total - state.wall;
  const width = size.stack;
  const depth = 22;
  return SEATS.map((at) => {
    const first = at * perSide;
    // Walls are taken clockwise: from the dealer's to the one at its left.
    const place = sideOf((state.dealer - at + 8) % 4, perspective);
    const mine = Math.min(perSide, stacks - first);
    return svg`<g class="wall" transform=${`rotate(${-90 * place})`}>${Array.from({ length: mine }, (_, index) => {
      const taken = gone - 2 * (first + index);
      if (taken >= 2) return nothing;
      const x = (perSide / 2 - index - 1) * width;
      return svg`<rect class=${taken === 1 ? "stack half" : "stack"} x=${x} y=${size.wall - depth} width=${width - 2.5} height=${depth} rx="3.5"></rect>`;
    })}</g>`;
  });
}

// What was just called, in front of who called it.
function called(call, place, size) {
  const distance = size.half - size.rim - size.hand - 60;
  const [x, y] = [[0, 1], [1, 0], [0, -1], [-1, 0]][place].map((way) => way * distance);
  const width = Math.max(64, 26 * [...call.text].length * (/^[\u0000-\u00ff]*$/.test(call.text) ? 0.62 : 1) + 36);
  const inside = Math.max(-size.half + width / 2 + 8, Math.min(size.half - width / 2 - 8, x));
  return svg`<g class="call" transform=${`translate(${inside} ${y})`} data-call=${call.kind ?? ""} data-seat-called=${call.seat}>
    <rect x=${-width / 2} y="-25" width=${width} height="50" rx="25"></rect>
    <text x="0" y="0" dy="0.36em" text-anchor="middle" font-size="26">${call.text}</text>
  </g>`;
}

const titled = (code) => (code ? tileName(code, language()) : undefined);

/**
 * Let the ring run down with the time of the turn or claim, by the server's clock; returns stop().
 * `now()` gives {state, skewMs: the server's time less the browser's} or null.
 */
export function runRing(root, now) {
  function tick() {
    const ring = root.querySelector("[data-ring]");
    if (!ring) return;
    const known = now();
    const share = known ? shareLeft(known.state, Date.now() + known.skewMs) : 0;
    ring.setAttribute("stroke-dashoffset", String(Math.round((1 - share) * 1000) / 10));
    ring.classList.toggle("late", share < 0.25);
  }
  const timer = setInterval(tick, 200);
  tick();
  return () => clearInterval(timer);
}

// How much is left of the time to act, 1 to 0; 0 where nobody is asked.
function shareLeft(state, atMs) {
  const { turn_since_ms, turn_ms, claim_ms, before_deal_ms } = state.clock;
  if (turn_since_ms === null || state.ended || state.closed) return 0;
  const whole = state.phase === "before_deal" ? before_deal_ms : state.turn === null ? claim_ms : turn_ms;
  return whole ? Math.max(0, Math.min(1, 1 - (atMs - turn_since_ms) / whole)) : 0;
}
