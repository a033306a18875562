import { type Check, failed, type Judgement, notApplicable, passed, unknown, warned } from "../check.ts";
import { type Facts, known } from "../facts.ts";
import type { AgentSelf } from "../gather/agent.ts";

export const agentChecks: readonly Check[] = [
  {
    id: "agent.answers",
    title: "The agent answers",
    why: "an agent that hangs starts no pods and renews no lease",
    look: (facts) => {
      const agent = known(facts.agent);
      switch (agent.state) {
        case "absent":
          return notApplicable(`no agent listens at ${agent.socket}`);
        case "silent":
          if (agent.isDenied)
            return unknown(`the agent at ${agent.socket} answers root only`, "run the doctor as root");
          return failed(
            `${agent.socket} is held by an agent that does not answer: ${agent.problem}`,
            "look at its log, then restart it",
          );
        case "older":
          return warned(
            `the agent at ${agent.socket} is older than this command`,
            "restart the agent, so that it runs the release that is installed",
          );
        case "running":
          return passed(`nodelet ${agent.self.version} (pid ${agent.self.pid}) answers`);
      }
    },
  },
  {
    id: "agent.health",
    title: "Every part of the agent is well",
    why: "each part shows by itself that it works; one that does not names what it waits for",
    look: ofAgent((self) => {
      const broken = self.health.filter(({ health }) => health.state === "failed");
      const waiting = self.health.filter(({ health }) => health.state === "waiting");
      const shown = [...broken, ...waiting]
        .map(({ name, health, sinceMs }) => `${name}: ${health.reason ?? ""} (for ${age(sinceMs)})`)
        .join("; ");
      if (broken.length > 0) return failed(shown, "look at the agent's log; restart it if it does not recover");
      if (waiting.length > 0) return warned(shown, "mend what is named; the agent goes on by itself");
      return passed(`${self.health.length} checks pass`);
    }),
  },
  {
    id: "agent.heartbeat",
    title: "The API server hears of the node",
    why: "a node that does not renew its lease is taken for dead after 40 s, and its pods are moved",
    look: ofAgent((self) => {
      const lease = self.health.find(({ name }) => name === "lease");
      if (lease === undefined) return notApplicable("the agent has no lease: it is stand-alone, or has yet to join");
      const { provenMs } = lease;
      if (lease.health.state === "ok") return passed(`the lease was renewed ${age(provenMs ?? 0)} ago`);
      return failed(lease.health.reason ?? "the lease is not renewed", "see the checks of the group api");
    }),
  },
  {
    id: "agent.watches",
    title: "What the agent knows of the cluster is fresh",
    why: "pods start, change and end by what the watches tell",
    look: ofAgent((self) => {
      if (self.watches.length === 0) return notApplicable("stand-alone: nothing is watched");
      const old = self.watches.filter(({ hasSynced, problem }) => !hasSynced || problem !== undefined);
      const ages = self.watches
        .map(({ of, heardMs }) => `${of} ${heardMs === undefined ? "never" : `${age(heardMs)} ago`}`)
        .join(", ");
      if (old.length === 0) return passed(`heard of ${ages}`);
      const shown = old.map(({ of, problem }) => `${of}: ${problem ?? "the first list has not come yet"}`).join("; ");
      return warned(shown, "see the checks of the group api");
    }),
  },
];

function ofAgent(look: (self: AgentSelf) => Judgement): (facts: Facts) => Judgement {
  return (facts) => {
    const agent = known(facts.agent);
    if (agent.state === "absent") return notApplicable("no agent runs");
    if (agent.state === "silent" && agent.isDenied)
      return unknown("the agent answers root only", "run the doctor as root");
    if (agent.state !== "running") return unknown("the agent does not say");
    return look(agent.self);
  };
}

/** Never below zero: the clock that ages are reckoned by is not the doctor's. */
function age(found: number): string {
  const ms = Math.max(0, found);
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  return ms < 7_200_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
}
