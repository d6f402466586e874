// A player in a page: queues, shows what happens at his table, and answers by buttons or by itself.
// What it needs comes in the address: #token=…&edge=http://127.0.0.1:7000&pool=baishan_kele-practice
import { createClient } from "@connectrpc/connect";

import { attend, Patience, untilKnown } from "./attend.js";
import { connection, Problem } from "./client.js";
import { actionText, choose, tell } from "./game.js";
import {
  MatchmakingService,
  TicketState,
  type Ticket,
} from "../gen/fangcheng/matchmaking/v1/matchmaking_pb.js";
import type { Prompt } from "../gen/fangcheng/table/v1/events_pb.js";
import type { Action } from "../gen/fangcheng/table/v1/state_pb.js";
import { LeaveMode, TableService } from "../gen/fangcheng/table/v1/table_pb.js";

const given = new URLSearchParams(location.hash.slice(1));
// A token does not stay in the address, where it would be copied and remembered.
history.replaceState(null, "", location.pathname);

const edge = connection(
  given.get("edge") ?? "http://127.0.0.1:7000",
  () => given.get("token") ?? "",
);
const queue = createClient(MatchmakingService, edge);
const table = createClient(TableService, edge);

const log = document.querySelector<HTMLElement>("#log")!;
const buttons = document.querySelector<HTMLElement>("#actions")!;
const auto = document.querySelector<HTMLInputElement>("#auto")!;
const leave = document.querySelector<HTMLButtonElement>("#leave")!;

function show(text: string): void {
  log.append(`${text}\n`);
  log.scrollTop = log.scrollHeight;
}
document.addEventListener("report", (event) => show((event as CustomEvent<string>).detail));

/** The caller's table: the one where he sits already, or a new one out of the pool's queue. */
async function seated(): Promise<string> {
  // Whoever loads the page anew goes on where he was.
  const status = await untilKnown(() => queue.getPlayerStatus({}));
  if (status.tableId) return status.tableId;
  if (status.ticket) return await assigned(status.ticket);
  // One id for all repeats: a lost answer does not queue the player twice.
  const requestId = crypto.randomUUID();
  const poolId = given.get("pool") ?? "baishan_kele-practice";
  const joined = await untilKnown(() => queue.joinQueue({ requestId, poolId, clientVersion: 1 }));
  show(`queued in ${poolId}${joined.replayed ? " (the first answer was lost)" : ""}`);
  return await assigned(joined.ticket!);
}

/** Waits for a ticket's table. The stream begins with the ticket as it is whenever it is opened. */
async function assigned({ ticketId }: Ticket): Promise<string> {
  const patience = new Patience();
  for (;;) {
    try {
      for await (const { ticket } of queue.watchTicket({ ticketId }, { timeoutMs: 0 })) {
        patience.alive();
        if (ticket?.state === TicketState.ASSIGNED) return ticket.tableId;
        if (ticket?.state === TicketState.FAILED) throw new Error(ticket.problem?.message);
      }
      throw new Error("the ticket has left the queue");
    } catch (error) {
      await patience.after(error);
    }
  }
}

/** Shows a button for each action of a prompt; in its place acts by itself where that is ticked. */
function ask(prompt: Prompt, act: (decisionId: string, action: Action) => Promise<void>): void {
  const answer = (action: Action) => {
    buttons.replaceChildren();
    act(prompt.decisionId, action).catch(fail);
  };
  const byItself = () => {
    if (auto.checked) answer(choose(prompt.kind, prompt.actions));
  };
  buttons.replaceChildren(
    ...prompt.actions.map((action) => {
      const button = document.createElement("button");
      button.textContent = actionText(action);
      button.onclick = () => answer(action);
      return button;
    }),
  );
  auto.onchange = byItself;
  byItself();
}

async function play(tableId: string): Promise<void> {
  async function act(decisionId: string, action: Action | { kind: string }): Promise<void> {
    try {
      await untilKnown(() => table.act({ tableId, decisionId, action }));
    } catch (error) {
      // Another's claim came first, or the time was over: the next events tell.
      if (Problem.of(error).reason !== "STALE_DECISION") throw error;
    }
  }

  leave.onclick = () => {
    leave.disabled = true;
    untilKnown(() => table.leaveTable({ tableId, mode: LeaveMode.AFTER_HAND })).catch(fail);
  };
  leave.disabled = false;
  const events = attend((fromNumber, snapshot, signal) =>
    table.attend({ tableId, fromNumber, snapshot }, { signal, timeoutMs: 0 }),
  );
  try {
    for await (const event of events) {
      show(`${event.number} ${tell(event)}`);
      const { kind } = event;
      if (kind.case === "prompt") ask(kind.value, act);
      if (kind.case === "promptClosed") buttons.replaceChildren();
      if (kind.case === "trusteeChanged" && kind.value.decisionId) {
        // The table has played for this seat while nothing was heard of it: take it back.
        await act(kind.value.decisionId, { kind: "back" });
      }
      if (kind.case === "snapshot") {
        // A table that was found in the middle tells what is asked, and whether it plays for the seat.
        if (kind.value.prompt) ask(kind.value.prompt, act);
        if (kind.value.backDecisionId) await act(kind.value.backDecisionId, { kind: "back" });
      }
    }
  } catch (error) {
    // The table goes on with another player.
    if (Problem.of(error).reason !== "LEFT_TABLE") throw error;
  }
  leave.disabled = true;
  show("left the table");
}

function fail(error: unknown): void {
  show(error instanceof Error ? error.message : String(error));
}

seated().then(play).catch(fail);
