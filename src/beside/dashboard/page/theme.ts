import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";

const themes: readonly Theme[] = ["system", "light", "dark"];
const key = "nodelet-theme";
const listeners = new Set<() => void>();
let chosen: Theme = saved();

function saved(): Theme {
  try {
    return themes.find((theme) => theme === localStorage.getItem(key)) ?? "system";
  } catch {
    return "system";
  }
}

export function applyTheme(): void {
  document.documentElement.dataset["theme"] = chosen;
}

export function nextTheme(): void {
  chosen = themes[(themes.indexOf(chosen) + 1) % themes.length] ?? "system";
  try {
    localStorage.setItem(key, chosen);
  } catch {
    // It holds until the page is closed.
  }
  applyTheme();
  for (const listener of listeners) listener();
}

/** What is chosen and what the system says, as one word that changes with either. */
export function useTheme(): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => redraw((count) => count + 1);
    dark.addEventListener("change", changed);
    listeners.add(changed);
    return () => {
      dark.removeEventListener("change", changed);
      listeners.delete(changed);
    };
  }, []);
  return `${chosen} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
}

export function chosenTheme(): Theme {
  return chosen;
}
