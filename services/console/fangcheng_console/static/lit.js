// What pages draw with: lit-html, and the few of its directives that we use.

import { noChange } from "./vendor/lit-html/lit-html.js";
import { Directive, PartType, directive } from "./vendor/lit-html/directive.js";

export { html, nothing, render, svg } from "./vendor/lit-html/lit-html.js";
export { classMap } from "./vendor/lit-html/directives/class-map.js";
export { guard } from "./vendor/lit-html/directives/guard.js";
export { ifDefined } from "./vendor/lit-html/directives/if-defined.js";
export { keyed } from "./vendor/lit-html/directives/keyed.js";
export { live } from "./vendor/lit-html/directives/live.js";
export { createRef, ref } from "./vendor/lit-html/directives/ref.js";
export { repeat } from "./vendor/lit-html/directives/repeat.js";

class Styled extends Directive {
  constructor(part) {
    super(part);
    if (part.type !== PartType.ELEMENT) throw new Error("styled() stands in a tag");
  }

  render() {
    return noChange;
  }

  update(part, [properties]) {
    for (const [name, value] of Object.entries(properties)) part.element.style.setProperty(name, value);
    return noChange;
  }
}

// `<div ${styled({"--share": "40%"})}>`: lit's own styleMap writes the attribute style at first,
// which the page's content security policy forbids.
export const styled = directive(Styled);
