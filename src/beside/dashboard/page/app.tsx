import type { ComponentChild } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import icon from "./icon.svg";
import { loadOtherPages, OtherPage } from "./other-pages.tsx";
import { NodePage } from "./pages/node.tsx";
import { PodsPage } from "./pages/pods.tsx";
import { loadPlotting } from "./parts/chart.tsx";
import { Ago } from "./parts/marks.tsx";
import { type Link, store, useNow, useStore } from "./store.ts";
import { chosenTheme, nextTheme, useTheme } from "./theme.ts";

interface Page {
  readonly path: string;
  readonly name: string;
  /** `rest` is what follows the path in the address. */
  readonly show: (rest: readonly string[]) => ComponentChild;
}

/** The pages of the navigation, in the order of their keys. */
const pages: readonly Page[] = [
  { path: "", name: "Node", show: () => <NodePage /> },
  {
    path: "pods",
    name: "Pods",
    show: ([uid]) =>
      uid === undefined || uid === "" ? (
        <PodsPage />
      ) : (
        <OtherPage show={({ PodPage }) => <PodPage key={uid} uid={uid} />} />
      ),
  },
  {
    path: "logs",
    name: "Logs",
    show: ([uid, container]) => <OtherPage show={({ LogsPage }) => <LogsPage uid={uid} container={container} />} />,
  },
  { path: "images", name: "Images", show: () => <OtherPage show={({ ImagesPage }) => <ImagesPage />} /> },
  { path: "storage", name: "Storage", show: () => <OtherPage show={({ StoragePage }) => <StoragePage />} /> },
  { path: "machine", name: "Machine", show: () => <OtherPage show={({ MachinePage }) => <MachinePage />} /> },
  { path: "config", name: "Config", show: () => <OtherPage show={({ ConfigPage }) => <ConfigPage />} /> },
  { path: "doctor", name: "Doctor", show: () => <OtherPage show={({ DoctorPage }) => <DoctorPage />} /> },
  { path: "agent", name: "Agent", show: () => <OtherPage show={({ AgentPage }) => <AgentPage />} /> },
];

export function App() {
  const path = usePath();
  const state = useStore();
  const heading = useRef<HTMLHeadingElement>(null);
  const [first = "", ...rest] = path;
  const page = pages.find((each) => each.path === first) ?? pages[0];
  const title = titleOf(page, rest[0]);
  useKeys();
  const isLive = state.link.state === "live";
  useEffect(() => {
    // Whoever opens one of them before it came hears why not.
    if (isLive) void Promise.allSettled([loadOtherPages(), loadPlotting()]);
  }, [isLive]);
  const where = state.node?.name ?? "nodelet";
  useEffect(() => {
    document.title = `${title} · ${where}`;
  }, [title, where]);
  // Another address is another page.
  useEffect(() => {
    scrollTo(0, 0);
    // Where the names of the pages are a row that scrolls, the one that is open is among those that are seen.
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    heading.current?.focus({ preventScroll: true });
  }, [path.join("/")]);
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href="#/">
          <img src={icon} alt="" width="22" height="22" />
          nodelet
        </a>
        <span class="node-name">{state.node?.name}</span>
        <LinkState link={state.link} />
        <ThemeButton />
      </header>
      <nav aria-label="Pages">
        <ul>
          {pages.map(({ path: to, name }, index) => (
            <li key={name}>
              <a href={`#/${to}`} {...(to === first && { "aria-current": "page" as const })}>
                {name}
                <span class="key" aria-hidden="true">
                  {(index + 1) % 10}
                </span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" class={state.link.state === "lost" ? "stale" : ""}>
        <Notices />
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <Shown key={`${first}/${rest[0] ?? ""}`}>{page?.show(rest)}</Shown>
      </main>
    </>
  );
}

/** What fails to draw is said; the rest of the page goes on. */
function Shown({ children }: { readonly children: ComponentChild }) {
  const [error, again] = useErrorBoundary();
  if (error === undefined) return <>{children}</>;
  return (
    <p class="notice bad" role="alert">
      This could not be drawn: {error instanceof Error ? error.message : String(error)}.{" "}
      <button type="button" class="plain" onClick={again}>
        Try again
      </button>
    </p>
  );
}

function titleOf(page: Page | undefined, uid: string | undefined): string {
  if (page?.path !== "pods" || uid === undefined || uid === "") return page?.name ?? "";
  return store.pods.get(uid)?.name ?? "Pod";
}

/** The address after `#/`, in its parts. */
function usePath(): readonly string[] {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

function skip(): void {
  document.querySelector<HTMLElement>("main h1")?.focus();
}

function LinkState({ link }: { readonly link: Link }) {
  if (link.state === "live") {
    return (
      <span class="link-state good">
        <span class="dot" aria-hidden="true" />
        live
      </span>
    );
  }
  if (link.state === "connecting") return <span class="link-state">connecting…</span>;
  return (
    <span class="link-state bad">
      ▲ away for <Ago at={link.since} />
    </span>
  );
}

const themeNames = { system: "as the system", light: "light", dark: "dark" } as const;

function ThemeButton() {
  useTheme();
  const name = themeNames[chosenTheme()];
  return (
    <button
      type="button"
      class="plain theme"
      onClick={nextTheme}
      aria-label={`Colours: ${name}`}
      title={`Colours: ${name}`}
    >
      <span aria-hidden="true">{{ system: "◑", light: "○", dark: "●" }[chosenTheme()]}</span>
    </button>
  );
}

const restartShownMs = 60_000;

/** What the reader must know before anything else. */
function Notices() {
  const { link, restart, isOutdated } = useStore();
  const now = useNow();
  return (
    <div aria-live="polite">
      {link.state === "lost" && (
        <p class="notice bad" role="status">
          <b>{noticeOf(link)}</b> What you see is what was known <Ago at={link.since} words=" ago" />.
        </p>
      )}
      {link.state === "live" && restart !== undefined && now - restart.at < restartShownMs && (
        <p class="notice" role="status">
          The agent restarted <Ago at={restart.at} words=" ago" />. Containers kept running.
        </p>
      )}
      {isOutdated && (
        <p class="notice" role="status">
          The agent is of another version now, with other pages than this one.{" "}
          <button type="button" class="plain" onClick={() => location.reload()}>
            Load them
          </button>
        </p>
      )}
    </div>
  );
}

function noticeOf({ status, message }: Link & { readonly state: "lost" }): string {
  switch (status) {
    case 0:
      return "The agent is away; trying again.";
    case 401:
      return "This page is not logged in any more. Run “nodelet dashboard” for a new address.";
    default:
      return `The agent says: ${message}.`;
  }
}

/** The digits lead to the pages. */
function useKeys(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      if (!/^\d$/.test(event.key)) return;
      const page = pages[(Number(event.key) + 9) % 10];
      if (page !== undefined) location.hash = `#/${page.path}`;
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
