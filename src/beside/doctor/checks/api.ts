import { type Check, failed, fileSource, type Judgement, notApplicable, passed, unknown, warned } from "../check.ts";
import { type Facts, known } from "../facts.ts";
import type { ApiAnswer, ApiFacts } from "../gather/api.ts";
import type { ApiStep } from "../gather/api-connection.ts";

export const apiChecks: readonly Check[] = [
  {
    id: "api.kubeconfig",
    title: "The kubeconfig can be used",
    why: "it says where the API server is, and proves who the node is",
    look: ofApi(({ kubeconfig, unusable, server }, facts) => {
      if (unusable === undefined) return passed(`${kubeconfig} leads to ${server}`, fileSource(kubeconfig));
      const config = known(facts.config);
      const bootstrap = config.report.flags.find(({ name }) => name === "--bootstrap-kubeconfig")?.value;
      if (bootstrap !== undefined && bootstrap !== "")
        return warned(
          unusable,
          "the agent makes it by the bootstrap kubeconfig when it starts",
          fileSource(kubeconfig),
        );
      return failed(unusable, "kubeadm join, or write a kubeconfig for system:node:NAME", fileSource(kubeconfig));
    }),
  },
  {
    id: "api.names",
    title: "The API server's name leads to an address",
    why: "without an address nobody can be asked",
    look: step("names", "see that a name server knows it, or add a line to /etc/hosts"),
  },
  {
    id: "api.tcp",
    title: "The API server can be reached",
    why: "a firewall or a missing route shows here",
    look: step("tcp", "see that the API server runs, and that routes and firewalls let this machine through"),
  },
  {
    id: "api.tls",
    title: "The API server is who it says",
    why: "authority, name and dates of its certificate must fit the kubeconfig",
    look: step(
      "tls",
      "for an unknown authority: certificate-authority in the kubeconfig; for a wrong name: tls-server-name; for dates: renew the certificate or set the clock",
    ),
  },
  {
    id: "api.credentials",
    title: "The API server knows this node",
    why: "a node without credentials gets no pods",
    look: answered(({ status }) => {
      if (status === 401)
        return failed(
          "the API server does not accept the credentials (401)",
          "renew them: kubeadm token create, then start the agent with --bootstrap-kubeconfig; or write a new kubeconfig",
        );
      if (status === 403)
        return failed(
          "the node may not read its own Node (403)",
          "the certificate must be for system:node:NAME in the group system:nodes, with NAME as the node is called",
        );
      if (status === 404)
        return warned("accepted, but the Node is not there", "the agent registers it unless registerNode is false");
      return status === 200 ? passed("accepted") : unknown(`the API server answered with ${status}`);
    }),
  },
  {
    id: "api.rights",
    title: "The node may do what an agent must",
    why: "each right that is missing stops one part of the agent",
    look: answered(({ rights, status }) => {
      if (status === 401) return notApplicable("the credentials are not accepted");
      const denied = rights.filter(({ allowed }) => allowed === false).map(({ what }) => what);
      const silent = rights.filter(({ allowed }) => allowed === undefined).map(({ what }) => what);
      if (denied.length > 0)
        return failed(
          `it may not ${denied.join(", ")}`,
          "the certificate must be for system:node:NAME in the group system:nodes; the API server needs --authorization-mode=Node,RBAC",
        );
      if (silent.length > 0) return unknown(`the API server would not say whether it may ${silent.join(", ")}`);
      return passed(`all ${rights.length} that were asked for`);
    }),
  },
  {
    id: "api.version",
    title: "The API server's release fits",
    why: "an agent may be up to three minor releases older than the API server, and never newer",
    look: answered(({ version }, facts) => {
      if (version === undefined) return unknown("the API server did not say its version");
      const agent = "value" in facts.agent ? facts.agent.value : undefined;
      const own = agent?.state === "running" ? agent.self.kubeletVersion : ownVersion;
      const [theirs, ours] = [minorOf(version), minorOf(own)];
      if (theirs === undefined || ours === undefined) return unknown(`the API server is ${version}`);
      const seen = `the API server is ${version}, the agent ${own}`;
      if (ours > theirs) return warned(`${seen}, which is newer`, "update the API server first");
      return theirs - ours > 3 ? warned(`${seen}, which is too old for it`, "update the agent") : passed(seen);
    }),
  },
  {
    id: "api.machine-id",
    title: "No other node has this machine's identity",
    why: "nodes that share a machine id are taken for one by storage, networks and licences",
    look: isNobodyElses,
  },
];

function isNobodyElses(facts: Facts): Judgement {
  const same = known(facts.sameMachines);
  if (same === undefined) return notApplicable("stand-alone, or the machine has no identity");
  switch (same.state) {
    case "forbidden":
      return notApplicable(
        `${same.kubeconfig} may not list nodes; to ask as an administrator: KUBECONFIG=FILE nodelet doctor`,
      );
    case "unanswered":
      return unknown(same.problem);
    case "asked": {
      const { names, looked, isAll } = same;
      const all = `${looked} other ${looked === 1 ? "node" : "nodes"}${isAll ? "" : ", and there are more"}`;
      if (names.length === 0) return passed(`none of ${all}`);
      return failed(
        `${names.slice(0, 10).join(", ")} ${names.length === 1 ? "has" : "have"} it too (${names.length} of ${all})`,
        "on all of them but one: rm /etc/machine-id && systemd-machine-id-setup && reboot; and empty the file in the image that they were made from",
      );
    }
  }
}

/** What this release follows, for when no agent runs. */
const ownVersion = "v1.34.0";

function minorOf(version: string): number | undefined {
  const found = /^v?1\.(\d+)/.exec(version)?.[1];
  return found === undefined ? undefined : Number(found);
}

function ofApi(look: (api: ApiFacts, facts: Facts) => Judgement): (facts: Facts) => Judgement {
  return (facts) => {
    const api = known(facts.api);
    return api === undefined ? notApplicable("stand-alone: there is no API server") : look(api, facts);
  };
}

function step(name: "names" | "tcp" | "tls", fix: string): (facts: Facts) => Judgement {
  return ofApi((api) => {
    const found: ApiStep | undefined = api[name];
    if (found === undefined)
      return api.notTried === undefined
        ? notApplicable("an earlier step failed, or there is none")
        : unknown(api.notTried);
    return found.ok ? passed(found.note) : failed(found.problem, fix);
  });
}

function answered(look: (answer: ApiAnswer, facts: Facts) => Judgement): (facts: Facts) => Judgement {
  return ofApi((api, facts) => {
    if (api.answer !== undefined) return look(api.answer, facts);
    const why = api.notTried ?? api.unanswered;
    return why === undefined ? notApplicable("the API server was not reached") : unknown(why);
  });
}
