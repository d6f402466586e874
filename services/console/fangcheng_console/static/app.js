// The page around the pages: who has signed in, where one is, language and theme, keys.

import { get, listen, remove } from "./api.js";
import * as i18n from "./i18n.js";
import { html, nothing, render } from "./lit.js";
import { said } from "./problems.js";
import { ROUTES, routeOf } from "./routes.js";
import shellWords from "./shell.i18n.js";

const { t } = i18n;
i18n.add(shellWords);

// g and then one of these goes to a page.
const GO = { lobby: "t", hands: "h", try: "y", wallet: "w", health: "s", operate: "o", log: "l" };

const shell = document.getElementById("app");
const state = {
  person: null,
  grafanaUrl: "",
  route: undefined,
  menu: false,
  away: false,
  keys: [], // of the page that is open
  going: false, // g was pressed
};
let opened = 0;
let close = () => {};

// What a page is given.
function appFor(number) {
  const isOpen = () => number === opened;
  return {
    get lang() {
      return i18n.language();
    },
    get theme() {
      return document.documentElement.dataset.theme;
    },
    get person() {
      return state.person;
    },
    get grafanaUrl() {
      return state.grafanaUrl;
    },
    t,
    navigate,
    signedIn,
    // The document's title while the page is open.
    title(text) {
      if (isOpen()) document.title = `${text} · ${t("shell.name")}`;
    },
    // Tell what has changed to who does not see it.
    say(text) {
      if (isOpen()) document.getElementById("said").textContent = text;
    },
    // The page's keys: [{key: "n", label: "…", run() {…}}], shown by "?" too; deaf while one types.
    keys(list) {
      if (isOpen()) state.keys = list;
    },
  };
}

// Going somewhere.

export function navigate(path, { replace = false } = {}) {
  const url = new URL(path, location.href);
  history[replace ? "replaceState" : "pushState"](null, "", url);
  show({ moved: true });
}

function followed(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  const within = /^#(.+)/.exec(link.getAttribute("href"));
  if (!within && !routeOf(link.pathname)) return;
  event.preventDefault();
  // A place within the page is no other page: nothing is opened again.
  if (within) return document.getElementById(within[1])?.focus();
  navigate(link.href);
}

async function show({ moved = false } = {}) {
  const number = ++opened;
  close();
  close = () => {};
  // What was asked of the page before is not asked of this one.
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  state.keys = [];
  state.menu = false;
  const found = routeOf(location.pathname);
  state.route = found?.route;
  if (found && !found.route.open && state.person === null) {
    const next = location.pathname + location.search;
    navigate(next === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`, { replace: true });
    return;
  }
  draw();
  const root = document.createElement("div");
  root.className = "page";
  const app = appFor(number);
  try {
    if (found === undefined) {
      missing(root, app);
    } else if (found.route.operators && state.person?.role !== "operator") {
      root.append(paragraph("empty", t("shell.operators_only")));
      app.title(t(found.route.nav));
    } else {
      const page = await load(found.route.page);
      if (number !== opened) return;
      place(root, moved);
      const ended = (await page.open(root, found.params, app)) ?? (() => {});
      if (number === opened) close = ended;
      else ended();
      return;
    }
  } catch (error) {
    if (number !== opened) return;
    if (!error.reason) console.error(error);
    broken(root, error);
  }
  place(root, moved);
}

function place(root, moved) {
  const main = document.getElementById("main");
  if (root.parentNode === main) return;
  main.replaceChildren(root);
  if (!moved) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

// A page's module, its words and its style, each fetched once.
async function load(name) {
  const [page, words] = await Promise.all([import(`./pages/${name}.js`), import(`./pages/${name}.i18n.js`)]);
  i18n.add(words.default);
  const styles = page.css ? [page.css].flat() : [];
  await Promise.all(styles.map(style));
  return page;
}

function style(name) {
  const id = `style-${name}`;
  if (document.getElementById(id)) return undefined;
  const link = document.createElement("link");
  link.id = id;
  link.rel = "stylesheet";
  link.href = `/static/pages/${name}.css`;
  return new Promise((done) => {
    link.onload = link.onerror = done;
    document.head.append(link);
  });
}

function paragraph(className, text) {
  const made = document.createElement("p");
  made.className = className;
  made.textContent = text;
  return made;
}

function missing(root, app) {
  app.title(t("shell.missing"));
  render(
    html`<section class="empty">
      <h1>${t("shell.missing")}</h1>
      <p>${t("shell.missing.more", { path: location.pathname })}</p>
      <p><a class="button" href="/">${t("shell.home")}</a></p>
    </section>`,
    root,
  );
}

function broken(root, error) {
  root.replaceChildren();
  const shown = document.createElement("div");
  render(
    html`<section class="empty">
      <h1>${t("shell.failed")}</h1>
      <p class="error" role="alert">${said(error)}</p>
      <p><button class="button" @click=${() => show()}>${t("shell.again")}</button></p>
    </section>`,
    shown,
  );
  root.append(shown);
}

// Who has signed in.

async function readSession() {
  const session = await get("/api/session");
  state.person = session.person;
  state.grafanaUrl = session.grafana_url ?? "";
}

async function signedIn() {
  await readSession();
  const next = new URLSearchParams(location.search).get("next") ?? "/";
  navigate(routeOf(new URL(next, location.href).pathname) && /^\/(?!\/)/.test(next) ? next : "/", { replace: true });
}

function signedOut() {
  if (state.person === null) return;
  state.person = null;
  if (!state.route?.open) show({ moved: true });
}

async function signOut() {
  try {
    await remove("/api/session");
  } catch {
    return; // The session was not taken back; api.js has told that nobody answers.
  }
  state.person = null;
  navigate("/sign-in");
}

// Language and theme.

function setLanguage(language) {
  i18n.setLanguage(language);
  document.documentElement.lang = i18n.locale();
  show();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  document.dispatchEvent(new Event("themechange"));
  draw();
}

// Keys.

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
  if (document.querySelector("dialog[open]")) return;
  const going = state.going;
  state.going = false;
  if (going) {
    const page = Object.keys(GO).find((name) => GO[name] === event.key);
    const route = visible().find((one) => one.page === page);
    if (route) {
      event.preventDefault();
      navigate(route.path);
    }
  } else if (event.key === "?") {
    event.preventDefault();
    help();
  } else if (event.key === "g") {
    state.going = state.person !== null;
  } else {
    const known = state.keys.find((one) => one.key === event.key);
    if (!known) return;
    // What is wider than its place is scrolled by arrows while it has the focus.
    if (event.key.startsWith("Arrow") && event.target.closest?.(".scroll")) return;
    // A button or link that has the focus keeps the keys that press it.
    if ((event.key === "Enter" || event.key === " ") && event.target.closest?.("a, button, summary")) return;
    event.preventDefault();
    known.run(event);
  }
}

const KEY_NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "␣" };

function help() {
  const row = (keys, label) =>
    html`<tr><th scope="row">${keys.map((key) => html`<kbd>${KEY_NAMES[key] ?? key}</kbd> `)}</th><td>${label}</td></tr>`;
  const dialog = document.getElementById("keys");
  render(
    html`<h2>${t("shell.keys")}</h2>
      ${
        state.keys.length
          ? html`<h3>${t("shell.keys.here")}</h3>
            <table class="keys"><tbody>${state.keys.map((one) => row([one.key], one.label))}</tbody></table>`
          : nothing
      }
      <h3>${t("shell.keys.everywhere")}</h3>
      <table class="keys"><tbody>
        ${visible().map((route) => row(["g", GO[route.page]], t("shell.keys.go", { page: t(route.nav) })))}
        ${row(["?"], t("shell.keys.help"))}
      </tbody></table>
      <form method="dialog"><button class="button">${t("shell.keys.close")}</button></form>`,
    dialog,
  );
  dialog.showModal();
}

// The shell.

const icon = (path) => html`<svg viewBox="0 0 20 20" width="18" height="18" fill="none" stroke="currentColor"
  stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${path}></path></svg>`;
const SUN = icon(
  "M10 6.500a3.500 3.500 0 1 0 0 7a3.500 3.500 0 1 0 0-7M10 1.500v1.500M10 17v1.500M1.500 10H3M17 10h1.500" +
    "M4 4l1.050 1.050M14.950 14.950L16 16M4 16l1.050-1.050M14.950 5.050L16 4",
);
const MOON = icon("M16.500 11.800A7 7 0 1 1 8.200 3.500a5.500 5.500 0 0 0 8.300 8.300z");

function visible() {
  if (state.person === null) return [];
  return ROUTES.filter((route) => route.nav && (!route.operators || state.person.role === "operator"));
}

function draw() {
  const theme = document.documentElement.dataset.theme;
  const other = theme === "dark" ? "light" : "dark";
  const here = state.route?.nav ? state.route.path : state.route?.under;
  const person = state.route?.bare ? null : state.person;
  render(
    html`<a class="skip" href="#main">${t("shell.skip")}</a>
      <header class="top">
        <a class="brand" href="/"><img src="/static/icon.svg" alt="" width="26" height="26"><span>${t("shell.name")}</span></a>
        ${
          person
            ? html`<button class="button quiet menu-button" aria-expanded=${state.menu} aria-controls="nav"
                @click=${() => {
                  state.menu = !state.menu;
                  draw();
                }}>${t("shell.menu")}</button>
              <nav id="nav" class=${state.menu ? "nav open" : "nav"} aria-label=${t("shell.pages")}>
                ${visible().map(
                  (route) =>
                    html`<a href=${route.path} aria-current=${route.path === here ? "page" : nothing}>${t(route.nav)}</a>`,
                )}
                <p class="me">${person.name || t("shell.name")} <span class="badge">${t(`shell.role.${person.role}`)}</span></p>
              </nav>`
            : nothing
        }
        <div class="top-end">
          ${
            person
              ? html`<span class="who"><span class="who-name">${person.name}</span>
                  <span class=${person.role === "operator" ? "badge accent" : "badge"}>${t(`shell.role.${person.role}`)}</span></span>`
              : nothing
          }
          <button class="button quiet" lang=${i18n.language() === "zh" ? "en" : "zh-CN"} title=${t("shell.language.title")}
            @click=${() => setLanguage(i18n.language() === "zh" ? "en" : "zh")}>${t("shell.language")}</button>
          <button class="button quiet icon" title=${t(`shell.theme.${other}`)} aria-label=${t(`shell.theme.${other}`)}
            @click=${() => setTheme(other)}>${theme === "dark" ? SUN : MOON}</button>
          ${
            person
              ? html`<button class="button quiet icon keys-button" title=${t("shell.keys")} aria-label=${t("shell.keys")} @click=${help}>?</button>
                <button class="button quiet" @click=${signOut}>${t("shell.sign_out")}</button>`
              : nothing
          }
        </div>
      </header>
      <p class="away" role="status" ?hidden=${!state.away}>${state.away ? t("shell.away") : nothing}</p>
      <main id="main" tabindex="-1"></main>
      <p id="said" class="unseen" aria-live="polite"></p>
      <dialog id="keys" class="dialog" aria-label=${t("shell.keys")}></dialog>`,
    shell,
  );
}

listen({
  signedOut,
  away(now) {
    state.away = now;
    draw();
  },
});
document.documentElement.lang = i18n.locale();
document.addEventListener("click", followed);
document.addEventListener("keydown", pressed);
addEventListener("popstate", () => show({ moved: true }));

try {
  await readSession();
} catch {
  // api.js has told that nobody answers; without a session one comes to the page that signs in.
}
show();
