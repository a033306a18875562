import { type Check, failed, notApplicable, passed, sourceOf, warned } from "../check.ts";
import { known } from "../facts.ts";
import { ConfigRefused } from "../gather/config.ts";

const mostNamed = 5;

export const configurationChecks: readonly Check[] = [
  {
    id: "config.valid",
    title: "The configuration is accepted",
    why: "an agent does not start with a configuration that it refuses",
    look: ({ config }) => {
      if ("value" in config) return passed(`that of ${config.value.subject}`);
      return config.error instanceof ConfigRefused
        ? failed(config.missing, "mend what is named; `nodelet config --check` with the same flags says it all")
        : { state: "unknown", seen: config.missing };
    },
  },
  {
    id: "config.drift",
    title: "The files still say what is in effect",
    why: "the next start of the agent would bring another configuration, at a moment that nobody chose",
    look: (facts) => {
      const { drift } = known(facts.config);
      if (drift === undefined) return notApplicable("no agent runs with this configuration");
      if (drift.state === "same") return passed("flags and files say what the agent runs with");
      if (drift.state === "invalid") {
        return failed(`the agent would not start again: ${drift.problem}`, "mend the files before the next restart");
      }
      const [first] = drift.settings;
      const shown = drift.settings
        .slice(0, mostNamed)
        .map(
          ({ name, running, next }) => `${name} runs as ${JSON.stringify(running)}, files say ${JSON.stringify(next)}`,
        );
      const more = drift.settings.length > mostNamed ? ` and ${drift.settings.length - mostNamed} more` : "";
      const fix = "restart the agent, or undo the change of the files";
      return warned(`${shown.join("; ")}${more}`, fix, first && sourceOf(first.origin));
    },
  },
  {
    id: "config.unheeded",
    title: "Every setting that is given is acted on",
    why: "a setting that no part acts on gives a false sense of safety",
    look: (facts) => {
      const { report } = known(facts.config);
      const given = [...report.fields, ...report.flags].filter(
        ({ effect, origin }) => effect === "not yet" && origin.from !== "default",
      );
      const [first] = given;
      if (first === undefined) return passed("no setting is given that has no effect yet");
      const names = given.map(({ name }) => name).join(", ");
      return warned(
        `read and checked, but no part of nodelet acts on it yet: ${names}`,
        "do without it for now",
        sourceOf(first.origin),
      );
    },
  },
];
