import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { logIn } from "./ask.ts";
import { copyAbsoluteTimes } from "./copied-times.ts";
import { store } from "./store.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
copyAbsoluteTimes();
const place = document.getElementById("app");
if (place !== null) void start(place);

async function start(element: HTMLElement): Promise<void> {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
  // Out of the address before anything else: it is no secret once it is used, and no use in a bookmark.
  if (token !== undefined) history.replaceState(null, "", location.pathname);
  // One that was used already is no harm where the cookie is there.
  const login = token === undefined ? undefined : logIn(token).catch(() => {});
  // Drawn while the agent makes up its mind.
  render(<App />, element);
  await login;
  store.follow();
}
