// What a refusal says in the page's language; one that has no words here says its own, in English.

import { add, has, t } from "./i18n.js";
import words from "./problems.i18n.js";

add(words);

export function said(problem) {
  return has(`problem.${problem.reason}`) ? t(`problem.${problem.reason}`) : problem.message;
}
