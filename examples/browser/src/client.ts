// What every page that calls the suite needs once: a transport, and errors with the reasons that the
// services give.
import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";

import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";

/** Deadline of a call that says none; a stream says `timeoutMs: 0`: heartbeats tell that it lives. */
const DEADLINE_MS = 10_000;

/**
 * The way to Envoy, which speaks gRPC-Web with browsers and gRPC with the services.
 *
 * `baseUrl`: `https://…`; without TLS a token would go over the network for all to read.
 * `token`: asked for one at each call, so that it may be renewed. It is a player's own: the studio's
 * backend makes it when he has signed in, and no page ever holds one that may do more.
 */
export function connection(baseUrl: string, token: () => string): Transport {
  const { protocol, hostname } = new URL(baseUrl);
  if (protocol !== "https:" && !["127.0.0.1", "localhost", "[::1]"].includes(hostname)) {
    throw new Error(`${baseUrl}: a token would leave this host in plain text; use https`);
  }
  const signed: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token()}`);
    return next(request);
  };
  return createGrpcWebTransport({
    baseUrl,
    interceptors: [signed],
    defaultTimeoutMs: DEADLINE_MS,
  });
}

/** What is told of connections that broke: the page listens. */
export function report(text: string): void {
  document.dispatchEvent(new CustomEvent("report", { detail: text }));
}

/** A call that was refused or lost. */
export class Problem extends Error {
  constructor(
    /** gRPC's status, such as `NotFound`. */
    readonly status: string,
    /** What went wrong, such as `STALE_DECISION`: what to decide by. The status where there is none. */
    readonly reason: string,
    message: string,
    /** What else the reason states, such as `table_id` of `ALREADY_SEATED`. */
    readonly metadata: Record<string, string> = {},
    /** When to ask again, where the service says. */
    readonly retryAfterMs = 0,
    /** Whether it passes by waiting, so that the same request is to be sent again. */
    readonly passes = false,
  ) {
    super(`${reason}: ${message}`);
  }

  static of(error: unknown): Problem {
    if (error instanceof Problem) return error;
    if (!(error instanceof ConnectError)) throw error;
    const { code, rawMessage, cause } = error;
    const status = Code[code];
    // `fetch` throws a TypeError where a connection was refused or broke; a stream that a proxy cut has
    // no trailer.
    const isLost = cause instanceof TypeError || /missing trailer/.test(rawMessage);
    const passes = isLost || PASSING_CODES.includes(code);
    const [info] = error.findDetails(ErrorInfoSchema);
    if (!info) return new Problem(status, status, rawMessage, {}, 0, passes);
    const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
    const waitMs = delay ? Number(delay.seconds) * 1_000 + delay.nanos / 1e6 : 0;
    // A stream ends with the token that it was opened with; it goes on with another.
    const isRenewed = info.reason === "TOKEN_EXPIRED" && info.metadata.ended === "stream";
    const isPassing = passes || isRenewed || PASSING_REASONS.includes(info.reason);
    return new Problem(status, info.reason, rawMessage, info.metadata, waitMs, isPassing);
  }
}

const PASSING_CODES = [Code.Unavailable, Code.Canceled, Code.DeadlineExceeded];
const PASSING_REASONS = ["READER_TOO_SLOW", "TOO_MANY_CALLS", "TOO_MANY_STREAMS"];
