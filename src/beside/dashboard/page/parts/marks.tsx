import type { ComponentChildren } from "preact";
import type { Tone } from "../../wire.ts";
import { absolute, longSpan } from "../format.ts";
import { store, useNow } from "../store.ts";

const shapes: Readonly<Record<Tone, string>> = { good: "●", busy: "◐", bad: "▲", over: "◇" };

/** A word with its colour and its shape. */
export function Mark({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`mark ${tone}`}>
      <span class="shape" aria-hidden="true">
        {shapes[tone]}
      </span>
      {children}
    </span>
  );
}

/** How long ago, or how long ahead; the time itself shows when pointed at. */
export function Ago({ at, words = "" }: { readonly at: number | undefined; readonly words?: string }) {
  const now = useNow();
  if (at === undefined) return <span class="muted">–</span>;
  return (
    <time dateTime={isoOf(at)} title={absolute(at)}>
      {longSpan(now - at)}
      {words}
    </time>
  );
}

export function Until({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <time dateTime={isoOf(at)} title={absolute(at)}>
      {at <= now ? "now" : `in ${longSpan(at - now + 999)}`}
    </time>
  );
}

function isoOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

export function Card(props: {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}) {
  const { title, note, wide, children } = props;
  return (
    <section class={wide === true ? "card wide" : "card"} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span class="muted">{note}</span>}
      </header>
      {children}
    </section>
  );
}

/** Names and what they stand for. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === "" || value === undefined ? "–" : value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Nothing({ children }: { readonly children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/** What a pod is called, leading to its page. */
export function PodLink({ uid, children }: { readonly uid: string; readonly children: ComponentChildren }) {
  return store.pods.has(uid) ? <a href={`#/pods/${uid}`}>{children}</a> : <span>{children}</span>;
}
