// What every Node client of the suite needs once: a connection, typed calls on it, and errors with
// the reasons that the services give.
import { readFileSync } from "node:fs";

import * as grpc from "@grpc/grpc-js";
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";

import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../gen/google/rpc/status_pb.js";

/** Deadline of a call with a single answer. Streams have none: heartbeats tell that they live. */
const DEADLINE_MS = 10_000;

const SERVICE_CONFIG = {
  // Replicas behind one name share the calls.
  loadBalancingConfig: [{ round_robin: {} }],
  methodConfig: [
    {
      name: [{}],
      // Every call of the suite may be repeated: what changes something carries a request id or a
      // decision id. gRPC repeats streams only until their first message.
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.1s",
        maxBackoff: "2s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "CANCELLED"],
      },
    },
  ],
};

const OPTIONS: grpc.ChannelOptions = {
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  // The servers allow a ping each 10 s; who pings more often is cut off.
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
};

/** What is told of connections that broke. */
export function report(text: string): void {
  console.log(text);
}

/** A call that was refused or lost. */
export class Problem extends Error {
  constructor(
    /** gRPC's status, such as `NOT_FOUND`. */
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
    const { code, details, metadata } = error as grpc.ServiceError;
    if (code === undefined) throw error;
    const status = grpc.status[code];
    // So a proxy ends a stream whose server it has lost.
    const isCut = code === grpc.status.INTERNAL && /RST_STREAM/.test(details);
    let passes = isCut || PASSING_STATUSES.includes(code);
    for (const value of metadata?.get("grpc-status-details-bin") ?? []) {
      const told = fromBinary(StatusSchema, value as Buffer).details;
      const info = told.map((one) => anyUnpack(one, ErrorInfoSchema)).find((one) => one);
      const delay = told.map((one) => anyUnpack(one, RetryInfoSchema)).find((one) => one)?.retryDelay;
      if (!info) continue;
      const waitMs = delay ? Number(delay.seconds) * 1_000 + delay.nanos / 1e6 : 0;
      // A stream ends with the token that it was opened with; it goes on with another.
      const isRenewed = info.reason === "TOKEN_EXPIRED" && info.metadata.ended === "stream";
      passes ||= isRenewed || PASSING_REASONS.includes(info.reason);
      return new Problem(status, info.reason, details, info.metadata, waitMs, passes);
    }
    return new Problem(status, status, details, {}, 0, passes);
  }
}

const PASSING_STATUSES = [
  grpc.status.UNAVAILABLE,
  grpc.status.CANCELLED,
  grpc.status.DEADLINE_EXCEEDED,
];
const PASSING_REASONS = ["READER_TOO_SLOW", "TOO_MANY_CALLS", "TOO_MANY_STREAMS"];

export class Connection {
  readonly #client: grpc.Client;
  readonly #token: () => string;

  /**
   * `target`: `host:port`, or a gRPC name such as `dns:///table.internal:7101`.
   * `token`: asked for one at each call, so that it may be renewed.
   * `ca`: file of the authority that signed the servers' certificates; "system": one that Node knows;
   * undefined: no TLS, on this host alone.
   */
  constructor(target: string, token: () => string, ca?: string) {
    if (!ca && !/^(127\.0\.0\.1|localhost|\[::1\]):/.test(target)) {
      throw new Error(`${target}: a token would leave this host in plain text; use TLS`);
    }
    const roots = !ca || ca === "system" ? null : readFileSync(ca);
    const credentials = ca ? grpc.credentials.createSsl(roots) : grpc.credentials.createInsecure();
    this.#client = new grpc.Client(target, credentials, OPTIONS);
    this.#token = token;
  }

  /** Makes a call with a single answer. Throws Problem. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        pathOf(method),
        (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        this.#metadata(),
        { deadline: Date.now() + DEADLINE_MS },
        (error, answer) => (error ? reject(Problem.of(error)) : resolve(answer!)),
      );
    });
  }

  /** Opens a stream, and closes it when the loop over it is left. Throws Problem. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): AsyncGenerator<MessageShape<O>> {
    const stream = this.#client.makeServerStreamRequest(
      pathOf(method),
      (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
      (bytes) => fromBinary(method.output, bytes),
      create(method.input, request),
      this.#metadata(),
    );
    signal?.addEventListener("abort", () => stream.cancel(), { once: true });
    try {
      for await (const message of stream) yield message as MessageShape<O>;
    } catch (error) {
      throw Problem.of(error);
    } finally {
      stream.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #metadata(): grpc.Metadata {
    const metadata = new grpc.Metadata();
    metadata.set("authorization", `Bearer ${this.#token()}`);
    return metadata;
  }
}

function pathOf(method: { name: string; parent: { typeName: string } }): string {
  return `/${method.parent.typeName}/${method.name}`;
}
