// What a refusal says in the page's language.

import { add, has, language, t } from "./i18n.js";
import words from "./problems.i18n.js";

add(words);

export function said(problem) {
  return has(`problem.${problem.reason}`) ? t(`problem.${problem.reason}`) : heard(problem);
}

// What whoever refused has said. Its own words are English and tell more; in Chinese they stand behind
// what its reason means.
export function heard(problem) {
  return language() === "zh" && problem.zh ? `${problem.zh}（${problem.message}）` : problem.message;
}
