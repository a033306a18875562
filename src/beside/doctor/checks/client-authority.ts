import { failed, type Judgement, mend, passed, sourceOf, unknown, warned } from "../check.ts";
import { type Facts, known, setting } from "../facts.ts";
import { dayMs, inDays } from "./days.ts";

const soonMs = 30 * dayMs;

/** A file is named, can be read, and holds a certificate that is valid now. */
export function clientAuthorityIsSet(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "authentication.x509.clientCAFile");
  const source = sourceOf(found.origin);
  const path = String(found.value ?? "");
  if (path === "") {
    const fix = mend(config, found, "/etc/kubernetes/pki/ca.crt", "client-ca-file");
    return failed("authentication.x509.clientCAFile is not set", fix, source);
  }
  const content = known(facts.certificates).find(({ use }) => use === "authorities of clients")?.content;
  const put = `put the cluster's authority in ${path} (on a control plane: /etc/kubernetes/pki/ca.crt)`;
  if (content === undefined || content.state === "absent") return failed(`${path} is not there`, put, source);
  if (content.state === "unreadable") return unknown(`${path}: ${content.problem}`, "run the doctor as root");
  if (content.state === "unusable") return failed(`${path} can't be used: ${content.problem}`, put, source);
  const { now } = known(facts.ground);
  const valid = content.certificates.filter(({ notBefore, notAfter }) => notBefore <= now && now < notAfter);
  const last = Math.max(...content.certificates.map(({ notAfter }) => notAfter));
  if (valid.length === 0)
    return failed(`no certificate in ${path} is valid now; the last ends ${inDays(last - now)}`, put, source);
  const end = Math.max(...valid.map(({ notAfter }) => notAfter));
  const seen = `${path} holds ${valid.length} valid ${valid.length === 1 ? "authority" : "authorities"}; the last ends ${inDays(end - now)}`;
  if (end - now < soonMs) return warned(seen, `renew the cluster's authority and ${put}`, source);
  return passed(seen, source);
}
