// A player who queues, plays hands, and leaves: see README.md for what it reads from the environment.
import { randomUUID } from "node:crypto";
import { env } from "node:process";

import { attend, Patience, untilKnown } from "./attend.js";
import { Connection, Problem } from "./client.js";
import { choose, tell } from "./game.js";
import {
  MatchmakingService,
  TicketState,
  type Ticket,
} from "../gen/fangcheng/matchmaking/v1/matchmaking_pb.js";
import { LeaveMode, TableService } from "../gen/fangcheng/table/v1/table_pb.js";
import type { Action } from "../gen/fangcheng/table/v1/state_pb.js";

const POOL = env.FANGCHENG_POOL ?? "baishan_kele-practice";
const HANDS = Number(env.FANGCHENG_HANDS ?? 1);

function connection(service: string, address: string): Connection {
  const target = env[`FANGCHENG_${service}`] ?? address;
  return new Connection(target, () => env.FANGCHENG_TOKEN ?? "", env.FANGCHENG_CA);
}

/** The caller's table: the one where he sits already, or a new one out of the pool's queue. */
async function seated(): Promise<string> {
  const queue = connection("MATCHMAKING", "127.0.0.1:7100");
  try {
    // Whoever was started again goes on where he was.
    const status = await untilKnown(() => queue.call(MatchmakingService.method.getPlayerStatus, {}));
    if (status.tableId) return status.tableId;
    let ticket = status.ticket;
    if (!ticket) {
      // One id for all repeats: a lost answer does not queue the player twice.
      const request = { requestId: randomUUID(), poolId: POOL, clientVersion: 1 };
      const joined = await untilKnown(() => queue.call(MatchmakingService.method.joinQueue, request));
      console.log(`queued in ${POOL}${joined.replayed ? " (the first answer was lost)" : ""}`);
      ticket = joined.ticket!;
    }
    return await assigned(queue, ticket);
  } finally {
    queue.close();
  }
}

/** Waits for a ticket's table. The stream begins with the ticket as it is whenever it is opened. */
async function assigned(queue: Connection, { ticketId }: Ticket): Promise<string> {
  const patience = new Patience();
  for (;;) {
    try {
      for await (const { ticket } of queue.stream(MatchmakingService.method.watchTicket, { ticketId })) {
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

async function play(tableId: string): Promise<void> {
  const table = connection("TABLE", "127.0.0.1:7101");

  async function act(decisionId: string, action: Action | { kind: string }): Promise<void> {
    try {
      const request = { tableId, decisionId, action };
      await untilKnown(() => table.call(TableService.method.act, request));
    } catch (error) {
      // Another's claim came first, or the time was over: the next events tell.
      if (Problem.of(error).reason !== "STALE_DECISION") throw error;
    }
  }

  let hands = 0;
  const events = attend((fromNumber, snapshot, signal) =>
    table.stream(TableService.method.attend, { tableId, fromNumber, snapshot }, signal),
  );
  try {
    for await (const event of events) {
      console.log(`${event.number} ${tell(event)}`);
      const { kind } = event;
      // A table that was found in the middle tells in its snapshot what is asked.
      const prompt = kind.case === "snapshot" ? kind.value.prompt : kind.case === "prompt" && kind.value;
      if (prompt) await act(prompt.decisionId, choose(prompt.kind, prompt.actions));
      // The table has played for this seat while nothing was heard of it: take it back.
      const back = kind.case === "snapshot" ? kind.value.backDecisionId : kind.case === "trusteeChanged" && kind.value.decisionId;
      if (back) await act(back, { kind: "back" });
      if (kind.case === "handEnded" && ++hands === HANDS) {
        const leave = { tableId, mode: LeaveMode.AFTER_HAND };
        await untilKnown(() => table.call(TableService.method.leaveTable, leave));
      }
    }
  } catch (error) {
    // The table goes on with another player.
    if (Problem.of(error).reason !== "LEFT_TABLE") throw error;
  } finally {
    table.close();
  }
  console.log("left the table");
}

try {
  await play(await seated());
} catch (error) {
  console.error(error instanceof Problem ? error.message : error);
  process.exitCode = 1;
}
