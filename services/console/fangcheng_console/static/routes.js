// Which page answers which path. `nav`: its words' key where it stands in the navigation; `operators`:
// only for them; `open`: for who has not signed in, too;
// `bare`: without the navigation around it.

export const ROUTES = [
  { path: "/", page: "lobby", nav: "nav.lobby" },
  { path: "/hands", page: "hands", nav: "nav.hands" },
  { path: "/try", page: "try", nav: "nav.try" },
  { path: "/wallet", page: "wallet", nav: "nav.wallet" },
  { path: "/health", page: "health", nav: "nav.health" },
  { path: "/operate", page: "operate", nav: "nav.operate", operators: true },
  { path: "/log", page: "log", nav: "nav.log", operators: true },
  { path: "/tables/:id", page: "table", under: "/" },
  { path: "/replay/:table/:hand", page: "replay", under: "/hands" },
  { path: "/r/:token", page: "replay", open: true, bare: true },
  { path: "/wallet/:player", page: "wallet", under: "/wallet" },
  { path: "/settlements/*key", page: "settlement", under: "/wallet" },
  { path: "/sign-in", page: "signin", open: true },
];

/** The path of a settlement's page: of its key, `table/hand`, each part stays a part. */
export const settlementPath = (key) => `/settlements/${key.split("/").map(encodeURIComponent).join("/")}`;

const compiled = ROUTES.map((route) => [
  new RegExp(
    `^${route.path
      .replace(/\/:(\w+)/g, "/(?<$1>[^/]+)")
      .replace(/\/\*(\w+)/g, "/(?<$1>.+)")}$`,
  ),
  route,
]);

// The route of a path with its parameters; undefined where nothing is there.
export function routeOf(path) {
  for (const [pattern, route] of compiled) {
    const match = pattern.exec(path);
    if (match === null) continue;
    try {
      const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
      return { route, params: Object.fromEntries(params) };
    } catch {
      return undefined; // a percent sign that stands for nothing
    }
  }
  return undefined;
}
