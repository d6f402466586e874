// Words in the person's language. Each page and module brings its own: {en: {…}, zh: {…}}.

const words = { en: {}, zh: {} };
const LANGUAGES = ["en", "zh"];

let chosen = stored() ?? (navigator.language.startsWith("zh") ? "zh" : "en");

function stored() {
  const language = localStorage.getItem("language");
  return LANGUAGES.includes(language) ? language : undefined;
}

export function add(dictionary) {
  for (const language of LANGUAGES) Object.assign(words[language], dictionary[language]);
}

export function language() {
  return chosen;
}

export function setLanguage(language) {
  chosen = language;
  localStorage.setItem("language", language);
}

// Whether a word is known: for keys that are made from data.
export function has(key) {
  return key in words[chosen];
}

// The words of a key, with {name} filled in from params.
export function t(key, params = {}) {
  const text = words[chosen][key];
  if (text === undefined) {
    console.error(`no words for ${key} in ${chosen}`);
    return key;
  }
  return text.replace(/\{(\w+)\}/g, (all, name) => (name in params ? params[name] : all));
}

// Formats of Intl in the language, each made once: to make one costs more than to use it a hundred times.
const formats = new Map();

export function format(kind, options = {}) {
  const key = `${kind} ${locale()} ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Intl[kind](locale(), options));
  return formats.get(key);
}

// Numbers and times as the language writes them.
export function number(value) {
  return format("NumberFormat").format(value);
}

export function time(ms, { date = false } = {}) {
  const shown = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  // In English by its name: 01/12 is a day in January to some, in December to others.
  if (date) Object.assign(shown, { year: "numeric", month: chosen === "zh" ? "2-digit" : "short", day: "2-digit" });
  return format("DateTimeFormat", shown).format(new Date(ms));
}

export function locale() {
  return chosen === "zh" ? "zh-CN" : "en-GB";
}
