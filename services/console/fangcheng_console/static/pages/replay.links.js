// The panel of a replay in which operators make links for customer service, and take them back.

import { get, post } from "../api.js";
import { has, time } from "../i18n.js";
import { html, nothing } from "../lit.js";
import { heard } from "../problems.js";

const HOURS = [1, 24, 72, 168, 720];
const USUAL_HOURS = 24;

// `query`: the part of the address that says which moment is shown.
export function linksPanel(api, app, redraw, query) {
  const { t } = app;
  let links = [];
  let made = null;
  let problem = null;
  let copied = "";

  const failed = (error) => {
    problem = error;
    redraw();
  };

  async function load() {
    try {
      ({ links } = await get(`${api}/links`));
      redraw();
    } catch (error) {
      failed(error);
    }
  }

  async function make(event) {
    event.preventDefault();
    const form = event.target;
    const given = new FormData(form);
    problem = null;
    try {
      made = await post(`${api}/links`, {
        reason: given.get("reason"),
        case_id: given.get("case_id"),
        hours: Number(given.get("hours")),
      });
      copied = "";
      form.reset();
      await load();
    } catch (error) {
      failed(error);
    }
  }

  async function revoke(event, link) {
    event.preventDefault();
    problem = null;
    try {
      await post(`/api/links/${encodeURIComponent(link.id)}/revoke`, { reason: new FormData(event.target).get("reason") });
      if (made?.id === link.id) made = null;
      await load();
    } catch (error) {
      failed(error);
    }
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(address());
      copied = "done";
    } catch {
      copied = "failed"; // not over https, or not allowed: the address stands there to be selected
    }
    redraw();
  }

  const address = () => `${location.origin}${made.path}${query()}`;

  function row(link) {
    return html`<li data-link=${link.id}>
      <p>${link.reason}${link.case_id ? html` <span class="badge">${link.case_id}</span>` : nothing}
        <span class="muted">${t("replay.links.by", { person: link.person, until: time(link.expires * 1_000, { date: true }) })}</span></p>
      <details><summary>${t("replay.links.revoke")}</summary>
        <form class="toolbar" @submit=${(event) => revoke(event, link)}>
          <div class="field"><label for=${`why-${link.id}`}>${t("replay.links.reason")}</label>
            <input id=${`why-${link.id}`} name="reason" required maxlength="256"></div>
          <button class="button danger">${t("replay.links.revoke")}</button>
        </form></details>
    </li>`;
  }

  function drawn() {
    return html`<section class="panel replay-links">
      <h2>${t("replay.links")}</h2>
      <p class="muted">${t("replay.links.lead")}</p>
      <form class="toolbar" @submit=${make}>
        <div class="field"><label for="link-reason">${t("replay.links.reason")}</label>
          <input id="link-reason" name="reason" required maxlength="256"></div>
        <div class="field"><label for="link-case">${t("replay.links.case")}</label>
          <input id="link-case" name="case_id" maxlength="256"></div>
        <div class="field"><label for="link-hours">${t("replay.links.hours")}</label>
          <select id="link-hours" name="hours">${HOURS.map(
            (hours) => html`<option value=${hours} ?selected=${hours === USUAL_HOURS}>${hours < 48 ? t("replay.links.in_hours", { hours }) : t("replay.links.in_days", { days: hours / 24 })}</option>`,
          )}</select></div>
        <button class="button primary" data-act="make_link">${t("replay.links.make")}</button>
      </form>
      <p class="error" role="alert" ?hidden=${!problem}>${
        problem ? (has(`replay.failed.${problem.reason}`) ? t(`replay.failed.${problem.reason}`) : heard(problem)) : nothing
      }</p>
      ${
        made
          ? html`<div class="replay-made" role="status"><p>${t("replay.links.made", { until: time(made.expires * 1_000, { date: true }) })}</p>
              <p><a class="made-link" href=${made.path + query()} target="_blank" rel="noopener">${address()}</a></p>
              <button class="button" @click=${copy}>${t(copied ? `replay.copy.${copied}` : "replay.links.copy")}</button></div>`
          : nothing
      }
      ${links.length ? html`<h3>${t("replay.links.open")}</h3><ul class="links">${links.map(row)}</ul>` : nothing}
    </section>`;
  }

  load();
  return { drawn };
}
