import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";

type OtherPages = typeof import("./pages/others.ts");

let loaded: OtherPages | undefined;

/** Asked for as soon as the first page is live, so that the others are there when the agent is away. */
export async function loadOtherPages(): Promise<OtherPages> {
  loaded ??= await import("./pages/others.ts");
  return loaded;
}

/** One of the pages that nobody sees first. What can't be loaded is said by whoever shows the page, and tried again there. */
export function OtherPage({ show }: { readonly show: (pages: OtherPages) => ComponentChild }) {
  const [pages, setPages] = useState(loaded);
  const [failure, setFailure] = useState<Error>();
  useEffect(() => {
    if (pages === undefined) void loadOtherPages().then(setPages, setFailure);
  }, []);
  if (failure !== undefined) throw failure;
  return pages === undefined ? <p class="quiet">Loading…</p> : show(pages);
}
