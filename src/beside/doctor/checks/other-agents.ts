import { type Check, failed, passed, shellWord, warned } from "../check.ts";
import { known, settingText } from "../facts.ts";
import { isAgent, isAgentElsewhere, rootDirOf } from "../gather/processes.ts";

const bundles = new Set(["k3s", "rke2", "k0s", "microk8s"]);

export const otherAgentChecks: readonly Check[] = [
  {
    id: "agents.one",
    title: "One agent runs this machine",
    why: "two agents stop each other's pods and write each other's cgroups",
    look: (facts) => {
      const processes = known(facts.processes);
      const { rootDir } = known(facts.config).report;
      const agents = processes.filter(isAgent);
      const others = processes.filter(
        ({ program, args, isElsewhere }) =>
          !isElsewhere && bundles.has(program) && args.some((word) => /server|agent|worker/.test(word)),
      );
      const same = agents.filter(({ args }) => rootDirOf(args) === rootDir);
      const shown = [...agents, ...others]
        .map(({ program, pid, args }) => `${program} (pid ${pid}, ${rootDirOf(args)})`)
        .join(", ");
      if (same.length > 1)
        return failed(
          `several agents share ${rootDir}: ${shown}`,
          "stop all but one, for instance: systemctl disable --now kubelet",
        );
      if (others.length > 0)
        return warned(`beside it: ${shown}`, `systemctl disable --now ${others[0]?.program}   unless both are meant`);
      const apart = agents.filter(({ args }) => rootDirOf(args) !== rootDir);
      if (apart.length > 0 && same.length > 0)
        return warned(
          `others run with directories of their own: ${shown}`,
          "nothing, if they use another runtime and cgroup root",
        );
      return passed(agents.length === 0 ? "none runs" : shown);
    },
  },
  {
    id: "agents.cadvisor",
    title: "No cAdvisor runs beside the agent",
    why: "it reads the same files again, at the price of a tenth of a core on a full node",
    look: (facts) => {
      const found = known(facts.processes).filter(({ program }) => program === "cadvisor");
      if (found.length === 0) return passed("none runs");
      return warned(`cadvisor runs (pid ${found[0]?.pid})`, "use /metrics/cadvisor of the agent instead");
    },
  },
  {
    id: "agents.leftovers",
    title: "No agent has left mounts behind",
    why: "volumes that stay mounted can't be used elsewhere, and hold what their pods have written",
    look: (facts) => {
      const processes = known(facts.processes);
      const left = known(facts.disk).otherRoots;
      const [first] = left;
      if (first === undefined) return passed("volumes are mounted for agents that run only");
      // Machines within this one have agents too, and directories that are called otherwise in there.
      if (processes.some(isAgentElsewhere))
        return { state: "manual", seen: `below ${left.join(", ")} pods have volumes` };
      return warned(
        `below ${left.join(", ")} volumes of pods are mounted, and no agent runs there`,
        `findmnt -rno TARGET | grep -F ${shellWord(`${first}/pods/`)} | sort -r | xargs -r -n 1 umount`,
      );
    },
  },
  {
    id: "agents.lock-file",
    title: "The lock file is the agent's",
    why: "with --lock-file the agent waits for whoever holds it",
    look: (facts) => {
      const path = settingText(known(facts.config), "--lock-file");
      if (path === "") return { state: "n/a", seen: "--lock-file is not given" };
      const agent = known(facts.agent);
      if (agent.state === "running") return passed(`held by the agent, pid ${agent.self.pid}`);
      const agents = known(facts.processes).filter(isAgent);
      if (agents.length === 0) return passed(`nobody holds ${path}`);
      return warned(
        `${agents.map(({ program, pid }) => `${program} (pid ${pid})`).join(", ")} may hold ${path}`,
        `fuser ${shellWord(path)}`,
      );
    },
  },
];
