// The dialog in which an operator does something: what it will do, why, and what came of it.

import { problemText, sentence, verbName } from "./acts.js";
import { get, post } from "./api.js";
import { t } from "./i18n.js";
import { html, nothing, render } from "./lit.js";
import { heard } from "./problems.js";

const MAIN = {
  void_hand: "table_id",
  close_table: "table_id",
  close_table_after_hand: "table_id",
  pause_pool: "pool_id",
  close_pool: "pool_id",
  resume_pool: "pool_id",
  freeze_player: "player_id",
  unfreeze_player: "player_id",
  reverse_settlement: "settlement",
};
const GENTLE = new Set(["resume_pool", "unfreeze_player", "unbar_pair", "pause_pool", "bar_pair"]);
const AT_TABLES = new Set(["void_hand", "close_table", "close_table_after_hand", "remove_player"]);
// After these the same may be asked for again under the same request id.
const UNKNOWN = new Set(["OUTCOME_UNKNOWN", "CONSOLE_AWAY"]);
const LONGEST_REASON = 256;
const LONGEST_CASE = 128;

/**
 * Do something, in a dialog: `target` is the one id that the verb is about, or an object. Resolves when
 * the dialog has closed, to whether it was done.
 */
export function act(app, { verb, target }) {
  const about = typeof target === "string" ? { [MAIN[verb]]: target } : target;
  return new Promise((closed) => new Act(app, verb, about, closed).open());
}

class Act {
  constructor(app, verb, target, closed) {
    this.app = app;
    this.verb = verb;
    this.target = target;
    this.closed = closed;
    this.requestId = newId();
    this.preview = null;
    this.outcome = null;
    this.problem = null; // of the whole
    this.wrong = {}; // by field
    this.values = {}; // of the fields, kept when one looks again
    this.working = false;
    this.asked = false; // nobody knows whether it was done
    this.dialog = document.createElement("dialog");
    this.dialog.className = "dialog act";
    this.dialog.setAttribute("aria-labelledby", "act-title");
    this.dialog.addEventListener("cancel", (event) => {
      if (this.working) event.preventDefault();
    });
    this.dialog.addEventListener("close", () => {
      this.dialog.remove();
      this.closed(this.outcome !== null);
    });
  }

  async open() {
    await style();
    document.body.append(this.dialog);
    this.draw();
    this.dialog.showModal();
    await this.look();
  }

  async look() {
    this.preview = null;
    this.draw();
    try {
      this.preview = await get(`/api/operate/preview?${new URLSearchParams({ verb: this.verb, ...this.target })}`);
    } catch (problem) {
      this.problem = problem;
    }
    this.draw();
    this.focus(this.preview && !this.preview.impossible ? "reason" : "cancel");
  }

  submitted(event) {
    event.preventDefault();
    if (this.working || this.outcome) return;
    const { reason, case_id: caseId, confirm } = event.target.elements;
    this.wrong = {};
    if (!reason.value.trim()) this.wrong.reason = t("act.reason.missing");
    if (confirm && confirm.value.trim() !== this.preview.confirm) {
      this.wrong.confirm = t("act.confirm.wrong", { text: this.preview.confirm });
    }
    const [first] = Object.keys(this.wrong);
    if (first) {
      this.draw();
      this.focus(first);
      return;
    }
    this.send(reason.value.trim(), caseId.value.trim());
  }

  async send(reason, caseId) {
    this.working = true;
    this.problem = null;
    this.draw();
    try {
      this.outcome = await post("/api/operate", {
        verb: this.verb,
        target: this.preview.target,
        seen: this.preview.seen,
        reason,
        case_id: caseId,
        request_id: this.requestId,
      });
    } catch (problem) {
      this.failed(problem);
    }
    this.working = false;
    this.draw();
    this.focus(this.outcome ? "close" : (Object.keys(this.wrong)[0] ?? "problem"));
  }

  failed(problem) {
    this.asked = UNKNOWN.has(problem.reason);
    if (["reason", "case_id"].includes(problem.field)) this.wrong = { [problem.field]: heard(problem) };
    else this.problem = problem;
    // What was refused is over: another try is another act.
    if (!this.asked) this.requestId = newId();
  }

  async again() {
    this.problem = null;
    await this.look();
  }

  focus(name) {
    this.dialog.querySelector(`#act-${name}`)?.focus();
  }

  draw() {
    render(
      html`<form method="dialog" novalidate @submit=${(event) => this.submitted(event)}>
        <h2 id="act-title">${verbName(this.verb)}</h2>
        ${this.outcome ? this.ended() : this.asking()}
      </form>`,
      this.dialog,
    );
  }

  says(said) {
    return sentence(said, this.preview.currencies);
  }

  asking() {
    const { preview, problem, working } = this;
    const isStale = problem?.reason === "STALE_PREVIEW" || problem?.reason === "IMPOSSIBLE_NOW";
    const canSend = preview && !preview.impossible && !isStale;
    return html`${
        preview
          ? this.shown()
          : problem
            ? nothing
            : html`<p class="muted" role="status">${t("act.looking")}</p>`
      }
      ${canSend ? this.fields() : nothing}
      ${
        problem
          ? html`<p id="act-problem" class="error" role="alert" tabindex="-1">${problemText(problem)}</p>`
          : nothing
      }
      <div class="toolbar act-buttons">
        <button id="act-cancel" type="button" class="button" ?disabled=${working}
          @click=${() => this.dialog.close()}>${t(canSend ? "act.cancel" : "act.close")}</button>
        ${
          problem && !canSend
            ? html`<button type="button" class="button" @click=${() => this.again()}>${t("act.look_again")}</button>`
            : nothing
        }
        ${
          canSend
            ? html`<button class=${GENTLE.has(this.verb) ? "button primary" : "button danger"} ?disabled=${working}>${
                working ? t("act.working") : this.asked ? t("act.again") : verbName(this.verb)
              }</button>`
            : nothing
        }
      </div>`;
  }

  shown() {
    const { preview } = this;
    const [about, ...rest] = preview.says;
    return html`<p class="act-about">${this.says(about)}</p>
      <ul class="act-says">${rest.map((said) => html`<li data-says=${said.key}>${this.says(said)}</li>`)}</ul>
      ${preview.warnings.map((said) => html`<p class="act-warning" data-says=${said.key}>${this.says(said)}</p>`)}
      ${
        preview.impossible
          ? html`<p class="error" role="alert" data-says=${preview.impossible.key}>${this.says(preview.impossible)}</p>`
          : nothing
      }
      <details class="act-request">
        <summary>${t("act.request")}</summary>
        <pre tabindex="0"><code>${preview.call.name} ${JSON.stringify(preview.call.request, null, 2)}</code></pre>
      </details>`;
  }

  fields() {
    const { confirm } = this.preview;
    // What was asked for under this request id is asked for again as it was.
    const fixed = this.working || this.asked;
    const hint = AT_TABLES.has(this.verb) ? "table" : this.verb === "close_pool" ? "pool" : "hint";
    return html`${this.field("reason", t("act.reason"), t(`act.reason.${hint}`), LONGEST_REASON, fixed)}
      ${this.field("case_id", t("act.case"), "", LONGEST_CASE, fixed)}
      ${
        confirm && !this.asked
          ? this.field("confirm", t("act.confirm", { text: confirm }), "", confirm.length, fixed)
          : nothing
      }`;
  }

  field(name, label, hint, longest, fixed) {
    const wrong = this.wrong[name];
    return html`<div class="field">
      <label for="act-${name}">${label}</label>
      <input id="act-${name}" name=${name} maxlength=${longest} autocomplete="off" spellcheck="false"
        .value=${this.values[name] ?? ""} @input=${(event) => {
          this.values[name] = event.target.value;
        }}
        ?readonly=${fixed} aria-invalid=${wrong ? "true" : "false"} aria-describedby="act-${name}-hint">
      <span id="act-${name}-hint" class=${wrong ? "hint bad" : "hint"}>${wrong ?? hint}</span>
    </div>`;
  }

  ended() {
    const { outcome } = this;
    const to = new URLSearchParams({ target: Object.values(this.target)[0] });
    return html`<div role="status">
        <p class="act-about good">${t("act.done")}</p>
        <ul class="act-says">${outcome.says.map((said) => html`<li data-says=${said.key}>${this.says(said)}</li>`)}</ul>
        ${outcome.replayed ? html`<p class="muted">${t("act.done_before")}</p>` : nothing}
        ${outcome.is_logged ? nothing : html`<p class="act-warning">${t("act.not_logged")}</p>`}
      </div>
      <div class="toolbar act-buttons">
        <a class="button" href="/log?${to}" @click=${() => this.dialog.close()}>${t("act.in_log")}</a>
        <button id="act-close" type="button" class="button primary" @click=${() => this.dialog.close()}>${t("act.close")}</button>
      </div>`;
  }
}

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

let styled;

export function style() {
  styled ??= new Promise((done) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/static/dialog.css";
    link.onload = link.onerror = done;
    document.head.append(link);
  });
  return styled;
}
