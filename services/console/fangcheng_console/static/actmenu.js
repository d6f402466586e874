// What an operator can do at a table, as a menu beside its picture.

import { verbName } from "./acts.js";
import { act, style } from "./dialog.js";
import { t } from "./i18n.js";
import { html, nothing } from "./lit.js";

style();

/**
 * For operators only. `players`: [{player_id, name}] who sit there; `phase` as the table's state has it;
 * `done` is called when something was done.
 */
export function tableMenu(app, { tableId, phase, players, done = () => {} }) {
  if (app.person?.role !== "operator" || phase === "closed") return nothing;
  const item = (verb, target, words) =>
    html`<li><button type="button" class="button" data-act=${verb} @click=${async (event) => {
      const menu = event.target.closest("details");
      menu.open = false;
      menu.querySelector("summary").focus(); // where the dialog gives the focus back to
      if (await act(app, { verb, target })) done();
    }}>${words}</button></li>`;
  return html`<details class="act-menu" @keydown=${closes} @focusout=${left}>
    <summary class="button">${t("act.menu")} <span aria-hidden="true">▾</span></summary>
    <ul>
      ${phase === "playing" || phase === "before_deal" ? item("void_hand", tableId, verbName("void_hand")) : nothing}
      ${item("close_table_after_hand", tableId, verbName("close_table_after_hand"))}
      ${item("close_table", tableId, verbName("close_table"))}
      ${players.map(({ player_id: player, name }) =>
        item("remove_player", { table_id: tableId, player_id: player }, t("act.menu.remove", { player: name || player })),
      )}
    </ul>
  </details>`;
}

function closes(event) {
  if (event.key !== "Escape" || !event.currentTarget.open) return;
  event.currentTarget.open = false;
  event.currentTarget.querySelector("summary").focus();
}

function left(event) {
  const menu = event.currentTarget;
  if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
}
