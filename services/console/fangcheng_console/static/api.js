// The console's API: JSON in and out, and streams of the latest state.

export class Problem extends Error {
  // zh: what is wrong in Chinese, where the console knows the reason; see problems.js.
  constructor(status, reason, message, field = "", zh = "") {
    super(message);
    this.status = status;
    this.reason = reason;
    this.field = field;
    this.zh = zh;
  }
}

// Who wants to hear: of a session that is over, and of a server that is away or back.
const listeners = { signedOut: () => {}, away: () => {} };

export function listen(more) {
  Object.assign(listeners, more);
}

export function get(path, { signal } = {}) {
  return call("GET", path, undefined, signal);
}

export function post(path, body = {}) {
  return call("POST", path, body);
}

export function remove(path) {
  return call("DELETE", path);
}

async function call(method, path, body, signal) {
  const headers = { accept: "application/json" };
  if (method !== "GET") headers["x-fangcheng-console"] = "1";
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    answered(false);
    throw new Problem(0, "CONSOLE_AWAY", "The console does not answer.");
  }
  answered(true);
  const text = await response.text();
  let told;
  try {
    told = JSON.parse(text);
  } catch {
    throw new Problem(response.status, "NO_JSON", `The console answered ${response.status}.`);
  }
  if (response.ok) return told;
  const { reason, message, field, zh } = told.error ?? {};
  if (response.status === 401 && reason === "NOT_SIGNED_IN") listeners.signedOut();
  throw new Problem(response.status, reason ?? "REFUSED", message ?? response.statusText, field, zh);
}

const RETRY_MS = [500, 1_000, 2_000, 5_000];
let away = 0; // streams that nobody answers
let isUnanswered = false; // the last call

function count(change) {
  away += change;
  listeners.away(away > 0 || isUnanswered);
}

function answered(isAnswered) {
  if (isUnanswered === !isAnswered) return;
  isUnanswered = !isAnswered;
  count(0);
}

// Follow a stream: onMessage gets what each event says, the whole latest state every time.
// While the tab is hidden it is closed (a browser keeps six connections to a host), and opened again
// with fresh state. onProblem gets the Problem of a stream that is refused for good. Returns close().
export function stream(path, onMessage, onProblem = () => {}) {
  let source = null;
  let timer = 0;
  let failures = 0;
  let isAway = false;
  let closed = false;

  function tell(nowAway) {
    if (nowAway !== isAway) count(nowAway ? 1 : -1);
    isAway = nowAway;
  }

  function open() {
    clearTimeout(timer);
    if (closed || source !== null || document.hidden) return;
    source = new EventSource(path);
    source.onmessage = (event) => {
      failures = 0;
      tell(false);
      answered(true);
      onMessage(JSON.parse(event.data));
    };
    source.onerror = () => {
      shut();
      failed();
    };
  }

  function shut() {
    source?.close();
    source = null;
  }

  // An EventSource does not say why it failed: what refuses the stream answers why.
  async function failed() {
    if (closed) return;
    failures += 1;
    if (failures > 1) {
      tell(true);
      const problem = await refusal(path);
      if (closed) return;
      if (problem !== null) {
        tell(false);
        if (problem.reason === "NOT_SIGNED_IN") listeners.signedOut();
        onProblem(problem);
        return;
      }
    }
    timer = setTimeout(open, RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]);
  }

  function turned() {
    if (document.hidden) {
      clearTimeout(timer);
      shut();
      tell(false);
    } else {
      open();
    }
  }

  document.addEventListener("visibilitychange", turned);
  open();
  return () => {
    closed = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", turned);
    shut();
    tell(false);
  };
}

// Why a stream is refused for good; null where it is not, or nobody answers.
async function refusal(path) {
  const stop = new AbortController();
  try {
    const response = await fetch(path, { signal: stop.signal, headers: { accept: "text/event-stream" } });
    if (response.ok || response.status >= 500 || response.status === 429) return null;
    const { error } = await response.json();
    return new Problem(response.status, error.reason, error.message, error.field, error.zh);
  } catch {
    return null;
  } finally {
    stop.abort();
  }
}
