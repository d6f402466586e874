// Signing in with a token, pasted or from the address (/sign-in#token), where it is removed at once.

import { post } from "../api.js";
import { has } from "../i18n.js";
import { html, nothing, render } from "../lit.js";
import { heard } from "../problems.js";

export const css = "signin";

// The token of the address, which has none afterwards.
function takeFromAddress() {
  const token = location.hash.slice(1);
  if (token) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}

export function open(root, params, app) {
  const { t } = app;
  let problem = null;
  let working = false;
  app.title(t("signin.title"));

  async function signIn(token) {
    working = true;
    problem = null;
    draw();
    try {
      await post("/api/session", { token });
    } catch (error) {
      working = false;
      problem = error;
      draw();
      root.querySelector("#token").focus();
      return;
    }
    await app.signedIn();
  }

  function submitted(event) {
    event.preventDefault();
    const field = root.querySelector("#token");
    const token = field.value.trim();
    field.value = "";
    signIn(token);
  }

  function draw() {
    const known = problem && has(`signin.failed.${problem.reason}`);
    render(
      html`<section class="panel signin">
        <img class="signin-mark" src="/static/icon.svg" alt="" width="56" height="56">
        <h1>${t("signin.title")}</h1>
        <p class="muted">${t("signin.lead")}</p>
        <form @submit=${submitted}>
          <div class="field">
            <label for="token">${t("signin.token")}</label>
            <input id="token" name="token" type="password" required autocomplete="off" spellcheck="false"
              aria-describedby="signin-problem" ?disabled=${working}>
          </div>
          <p id="signin-problem" class="error" role="alert" ?hidden=${!problem}>${
            problem ? (known ? t(`signin.failed.${problem.reason}`) : heard(problem)) : nothing
          }</p>
          <button class="button primary" ?disabled=${working}>${t(working ? "signin.working" : "signin.submit")}</button>
        </form>
        <details>
          <summary>${t("signin.how")}</summary>
          <p>${t("signin.how.link")}</p>
          <pre><code>fangcheng console</code></pre>
          <p>${t("signin.how.viewer")}</p>
          <pre><code>fangcheng console --role viewer --name wang</code></pre>
        </details>
      </section>`,
      root,
    );
  }

  const token = takeFromAddress();
  draw();
  if (token) signIn(token);
  else root.querySelector("#token").focus();
  return () => {};
}
