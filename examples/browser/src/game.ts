// How a hand is told in words, and how this player chooses. The same file in examples/node and
// examples/browser.
import type { TableEvent } from "../gen/fangcheng/table/v1/events_pb.js";
import type { Action } from "../gen/fangcheng/table/v1/state_pb.js";

/** A tile as text: 11 is `1m` (万), 25 `5p` (饼), 39 `9s` (条), 41 `1z` (东), 51 `1f`; 0 is hidden. */
export function tileText(tile: number): string {
  return tile ? `${tile % 10}${"mpszf"[Math.floor(tile / 10) - 1]}` : "??";
}

/** Any win; of claims none; otherwise the last discard that is offered, which declares nothing. */
export function choose(promptKind: string, actions: Action[]): Action {
  const win = actions.find((action) => action.kind === "win");
  const pass = actions.find((action) => action.kind === "pass");
  const discard = actions.findLast((action) => action.kind === "discard" && !action.declare);
  // Never a false win (诈胡), which costs and leaves the prompt open.
  const action = win ?? pass ?? discard ?? actions.find(({ kind }) => kind !== "false_win");
  if (!action) throw new Error(`nothing was offered: ${promptKind}`);
  return action;
}

export function actionText({ kind, tile, tiles, declare }: Action): string {
  const words = [kind, ...[...tiles, tile].filter((one) => one).map(tileText), declare];
  return words.filter((word) => word).join(" ");
}

/** An event in a few words; kinds that a real client would draw are named only. */
export function tell({ kind }: TableEvent): string {
  switch (kind.case) {
    case "dealt":
      return `dealt: ${kind.value.hands.flatMap(({ tiles }) => tiles.filter((tile) => tile)).map(tileText).join(" ")}`;
    case "drawn":
      return `seat ${kind.value.seat} draws ${tileText(kind.value.tile)}`;
    case "discarded":
      return `seat ${kind.value.seat} discards ${tileText(kind.value.tile)}`;
    case "melded":
      return `seat ${kind.value.seat} lays down ${kind.value.meld?.tiles.map(tileText).join(" ")}`;
    case "prompt":
      return `asked: ${kind.value.actions.map(actionText).join(", ")}`;
    case "handEnded":
      // Amounts are bigint; JSON and Number would lose what is beyond 2^53.
      return `hand ${kind.value.handNumber} ended: ${kind.value.net.join(" ")}`;
    case "tableClosed":
      return `the table closed: ${kind.value.reason}`;
    default:
      return kind.case ?? "unknown";
  }
}
