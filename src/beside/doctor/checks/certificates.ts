import {
  type Check,
  failed,
  fileSource,
  type Judgement,
  notApplicable,
  passed,
  shellWord,
  unknown,
  warned,
} from "../check.ts";
import { type Facts, known } from "../facts.ts";
import type { CertificateFact } from "../gather/certificates.ts";
import { dayMs, inDays } from "./days.ts";

const soonMs = 14 * dayMs;

export const certificateChecks: readonly Check[] = [
  {
    id: "certificates.dates",
    title: "Every certificate in use is valid, and for a while",
    why: "when one runs out, the node leaves the cluster or can't be asked any more",
    look: (facts) => everyCertificate(facts, datesOf),
  },
  {
    id: "certificates.keys",
    title: "Every key belongs to its certificate",
    why: "a pair that does not fit together can't be used, and the agent does not start with it",
    look: (facts) => everyCertificate(facts, keyOf),
  },
  {
    id: "certificates.modes",
    title: "Only root can read the keys",
    why: "who has a node's key can act as the node",
    look: (facts) => everyCertificate(facts, modeOf),
  },
  {
    id: "certificates.rotation",
    title: "Certificates are renewed in time",
    why: "one whose renewal fails shows it weeks before it runs out",
    look: (facts) => {
      const agent = known(facts.agent);
      if (agent.state !== "running") return notApplicable("only a running agent renews certificates");
      const { client, server } = agent.self.certificates;
      const { now } = agent.self;
      const kept = Object.entries({ client, server }).filter(([, state]) => state !== undefined);
      if (kept.length === 0) return notApplicable("the agent keeps no certificate of its own");
      const late = kept.filter(
        ([, state]) =>
          (state?.failures ?? 0) > 0 || (state?.askingSince !== undefined && now - state.askingSince > 600_000),
      );
      if (late.length > 0) {
        const shown = late.map(([use, state]) => `${use}: ${state?.failures ?? 0} attempts in a row failed`).join("; ");
        return warned(shown, "kubectl get csr, then kubectl certificate approve NAME of this node's request");
      }
      const due = kept.flatMap(([use, state]) =>
        state?.kept === undefined ? [] : [`${use} due ${inDays(state.kept.dueAt - now)}`],
      );
      return passed(due.join(", ") || "none is due");
    },
  },
];

type Usable = CertificateFact & { readonly content: Extract<CertificateFact["content"], { readonly state: "usable" }> };

function everyCertificate(facts: Facts, look: (certificate: Usable, now: number) => Judgement | undefined): Judgement {
  const { now } = known(facts.ground);
  const all = known(facts.certificates);
  const usable = all.filter((each): each is Usable => each.content.state === "usable");
  const verdicts = [...usable.flatMap((each) => look(each, now) ?? []), ...all.flatMap(notReadable)];
  const worst = (["fail", "unknown", "warn"] as const)
    .map((state) => verdicts.find((verdict) => verdict.state === state))
    .find((verdict) => verdict !== undefined);
  if (worst === undefined && usable.length === 0) return notApplicable("no certificate is in use");
  if (worst === undefined) return passed(usable.map(({ use, where }) => `${use}: ${where}`).join(", "));
  const others = verdicts.filter((each) => each !== worst && each.state === worst.state);
  return { ...worst, seen: [worst, ...others].map(({ seen }) => seen).join("; ") };
}

/** Whoever may not read it can't judge it. */
function notReadable({ where, content }: CertificateFact): Judgement[] {
  return content.state === "unreadable" ? [unknown(`${where}: ${content.problem}`, "run the doctor as root")] : [];
}

function datesOf({ use, where, content, file }: Usable, now: number): Judgement | undefined {
  const source = file === undefined ? undefined : fileSource(file.path);
  // Authorities that have ended, or have yet to begin, stand beside those that follow or precede them: one is enough.
  const isAuthority = use === "authorities of clients" || use === "authority of the API server";
  const counted = isAuthority ? content.certificates : content.certificates.slice(0, 1);
  const ends = Math.max(...counted.map(({ notAfter }) => notAfter));
  const begins = Math.min(...counted.map(({ notBefore }) => notBefore));
  const renew =
    use === "client"
      ? "kubeadm certs renew, or start the agent with --bootstrap-kubeconfig"
      : "have it renewed, and put it in its place";
  if (ends <= now) return failed(`${where} (${use}) has ended ${inDays(ends - now)}`, renew, source);
  if (begins > now) return failed(`${where} (${use}) begins only ${inDays(begins - now)}`, "set the clock", source);
  return ends - now < soonMs && ends - begins > 2 * soonMs
    ? warned(`${where} (${use}) ends ${inDays(ends - now)}`, renew, source)
    : undefined;
}

function keyOf({ where, content, file }: Usable): Judgement | undefined {
  const { key } = content;
  const source = file === undefined ? undefined : fileSource(file.path);
  if (key.state === "other")
    return failed(
      `the key beside ${where} is that of another certificate`,
      "put certificate and key of the same pair in place",
      source,
    );
  if (key.state === "unreadable") return unknown(`the key of ${where}: ${key.problem}`, "run the doctor as root");
  if (key.state !== "unusable") return undefined;
  return failed(`the key of ${where}: ${key.problem}`, "put certificate and key of the same pair in place", source);
}

function modeOf({ content }: Usable): Judgement | undefined {
  const file = content.key.state === "none" ? undefined : content.key.file;
  if (file?.state !== "there" || (file.mode & 0o077) === 0) return undefined;
  const shown = (file.mode & 0o777).toString(8);
  return failed(`${file.path} is ${shown}`, `chmod 600 ${shellWord(file.path)}`, fileSource(file.path));
}
