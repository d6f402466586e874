// Streams that go on after their connection broke. The same file in examples/node and
// examples/browser.
import { Problem, report } from "./client.js";
import type { AttendResponse } from "../gen/fangcheng/table/v1/table_pb.js";
import type { TableEvent } from "../gen/fangcheng/table/v1/events_pb.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;
const GIVE_UP_MS = 60_000;
/** Heartbeats come more often: a stream that says nothing for so long is dead. */
const SILENCE_MS = 60_000;

/** Waits longer after each break, and gives up when nothing has come for a minute. */
export class Patience {
  #alive = Date.now();
  #pauseMs = FIRST_PAUSE_MS;

  /** Something has come. */
  alive(): void {
    this.#alive = Date.now();
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** Returns when to try again; throws what does not pass by waiting. */
  async after(error: unknown): Promise<void> {
    const problem = Problem.of(error);
    if (!problem.passes || Date.now() - this.#alive > GIVE_UP_MS) throw problem;
    report(`connection lost (${problem.message}), trying again`);
    // By chance, so that the players of a lost replica do not all come back at once.
    const pause = problem.retryAfterMs + this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Sends the same request until its outcome is known: a repeat is answered as the first was. */
export async function untilKnown<T>(call: () => Promise<T>): Promise<T> {
  const patience = new Patience();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      await patience.after(error);
    }
  }
}

type Open = (from: bigint, snapshot: boolean, signal: AbortSignal) => AsyncIterable<AttendResponse>;

/**
 * The events of a seat after number `from`, each once and in order, until the table has closed.
 *
 * Numbers are of 64 bits, so they are bigint. A stream that asks for events which are no longer kept
 * begins with a snapshot, which stands for all up to its number; so does one that has met a kind of
 * event which this client is too old to know.
 */
export async function* attend(open: Open, from = 0n): AsyncGenerator<TableEvent> {
  const patience = new Patience();
  let last: bigint = from;
  let snapshot = false;
  for (;;) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      for await (const response of open(last, snapshot, silence.signal)) {
        patience.alive();
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        const { message }: AttendResponse = response;
        if (message.case !== "event") continue; // a heartbeat, or what a seat says
        const event: TableEvent = message.value;
        const isSnapshot = event.kind.case === "snapshot";
        if (isSnapshot ? event.number < last : event.number <= last) continue;
        if (!isSnapshot && event.number !== last + 1n) {
          throw new Error(`event ${event.number} came after ${last}`);
        }
        last = event.number;
        snapshot = event.kind.case === undefined;
        if (snapshot) break;
        yield event;
      }
      if (!snapshot) return;
    } catch (error) {
      await patience.after(error);
    } finally {
      clearTimeout(timer);
    }
  }
}
