/** A component pattern (`*`, `?` and `[...]` as in file names) and the verbosity its lines are shown at. */
export interface ComponentVerbosity {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** Which debug lines are shown. The verbosity may change while in use; a pattern only ever shows more, as in klog. */
export class LogLevels {
  #verbosity: number;
  readonly #patterns: readonly { readonly matches: RegExp; readonly verbosity: number }[];
  readonly #byComponent = new Map<string, number>();

  constructor(verbosity: number, vmodule: readonly ComponentVerbosity[] = []) {
    this.#verbosity = verbosity;
    this.#patterns = vmodule.map((rule) => ({ matches: globPattern(rule.filePattern), verbosity: rule.verbosity }));
  }

  get verbosity(): number {
    return this.#verbosity;
  }

  set verbosity(level: number) {
    this.#verbosity = level;
  }

  shows(component: string, level: number): boolean {
    return this.#verbosity >= level || (this.#patterns.length > 0 && this.#componentVerbosity(component) >= level);
  }

  #componentVerbosity(component: string): number {
    let verbosity = this.#byComponent.get(component);
    if (verbosity === undefined) {
      verbosity = this.#patterns.find(({ matches }) => matches.test(component))?.verbosity ?? 0;
      this.#byComponent.set(component, verbosity);
    }
    return verbosity;
  }
}

function globPattern(glob: string): RegExp {
  const source = glob.replace(/\[(\^?)([^\]]+)\]|[\s\S]/g, (part, negation: string | undefined, set?: string) => {
    if (set !== undefined) return `[${negation ?? ""}${set.replace(/[\\[\]]/g, "\\$&")}]`;
    if (part === "*") return ".*";
    if (part === "?") return ".";
    return part.replace(/[\\^$.|+()[\]{}/]/, "\\$&");
  });
  try {
    return new RegExp(`^${source}$`, "s");
  } catch {
    return /^(?!)/;
  }
}
