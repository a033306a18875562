import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import type { FileFact } from "./files.ts";
import { isAgent } from "./processes.ts";

/** The service that runs the agent, as systemd has it. */
export type UnitFacts =
  | { readonly kind: "no systemd" }
  | { readonly kind: "no unit"; readonly looked: readonly string[] }
  | {
      readonly kind: "unit";
      readonly name: string;
      /** Its own file, then every drop-in. */
      readonly files: readonly FileFact[];
      /** The last `IPAddressDeny=` of them; undefined: there is none. */
      readonly addressDeny: string | undefined;
    };

/** In the order in which systemd looks; the first one wins. */
const directories = [
  ...["/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system"],
  ...["/usr/lib/systemd/system", "/lib/systemd/system"],
];

export async function gatherUnit(world: ExaminedWorld, need: NeedFact): Promise<UnitFacts> {
  const { machine } = world;
  if (!(await machine.isThere("/run/systemd/system"))) return { kind: "no systemd" };
  const own = await unitOfAgent(world, need);
  const names = [...(own === undefined ? [] : [own]), "nodelet.service", "kubelet.service"];
  for (const name of names) {
    const files = await unitFiles(world, name);
    if (files.length > 0 && (name !== own || (await startsAgent(world, name, files))))
      return { kind: "unit", name, files, addressDeny: await addressDeny(world, files) };
  }
  return { kind: "no unit", looked: names };
}

/** The service whose cgroup the agent is in. */
async function unitOfAgent({ machine, flags }: ExaminedWorld, need: NeedFact): Promise<string | undefined> {
  const agent = await need("agent");
  const others = flags.length > 0 ? [] : (await need("processes").catch(() => [])).filter(isAgent);
  const pid = agent.state === "running" ? agent.self.pid : others[0]?.pid;
  if (pid === undefined) return undefined;
  const cgroups = (await machine.textIfThere(`/proc/${pid}/cgroup`).catch(() => undefined)) ?? "";
  return /\/([^/\n]+\.service)(?:\/[^\n]*)?$/m.exec(cgroups)?.[1];
}

/** An agent that a person starts by hand is in the cgroup of that person's session, which is no unit of the agent's. */
async function startsAgent({ machine }: ExaminedWorld, name: string, files: readonly FileFact[]): Promise<boolean> {
  if (/nodelet|kubelet|k3s|rke2/.test(name)) return true;
  for (const { path } of files) {
    const content = (await machine.textIfThere(path).catch(() => undefined)) ?? "";
    if (/^\s*ExecStart\s*=.*(?:nodelet|kubelet|k3s|rke2)/m.test(content)) return true;
  }
  return false;
}

async function unitFiles({ machine }: ExaminedWorld, name: string): Promise<readonly FileFact[]> {
  const template = name.replace(/@[^.]*\./, "@.");
  const fragment = await firstThere(machine, [name, template]);
  if (fragment === undefined) return [];
  const found = [fragment];
  const seen = new Set<string>();
  for (const unit of new Set([name, template, "service"])) {
    for (const directory of directories) {
      for (const file of await machine.names(`${directory}/${unit}.d`, 100)) {
        // A drop-in hides those of the same name in later directories; /lib is /usr/lib on most machines.
        if (!file.endsWith(".conf") || seen.has(file)) continue;
        seen.add(file);
        found.push(await machine.fact(`${directory}/${unit}.d/${file}`));
      }
    }
  }
  return found;
}

async function firstThere(machine: ExaminedWorld["machine"], names: readonly string[]): Promise<FileFact | undefined> {
  for (const name of names) {
    for (const directory of directories) {
      const fact = await machine.fact(`${directory}/${name}`);
      if (fact.state !== "absent") return fact;
    }
  }
  return undefined;
}

async function addressDeny({ machine }: ExaminedWorld, files: readonly FileFact[]): Promise<string | undefined> {
  let found: string | undefined;
  for (const { path } of files) {
    const content = (await machine.textIfThere(path).catch(() => undefined)) ?? "";
    for (const [, value] of content.matchAll(/^\s*IPAddressDeny\s*=\s*(.*?)\s*$/gm)) found = value;
  }
  return found;
}
