import { type Check, failed, manual, notApplicable, passed, warned } from "../check.ts";
import { known, settingText } from "../facts.ts";

const fix = "systemctl enable --now systemd-timesyncd   (or chrony), and see that it reaches a time server";

export const timeChecks: readonly Check[] = [
  {
    id: "time.api-server",
    title: "The clock agrees with the API server's",
    why: "certificates and tokens are valid by the clock, and leases are judged by it",
    look: (facts) => {
      if (settingText(known(facts.config), "--kubeconfig") === "")
        return notApplicable("stand-alone: there is no API server");
      const api = "value" in facts.api ? facts.api.value : undefined;
      if (api !== undefined && api.answer === undefined && api.notTried === undefined) {
        return notApplicable("the API server was not reached");
      }
      const { aheadOfApiMs } = known(facts.time);
      if (aheadOfApiMs === undefined) return { state: "unknown", seen: "the API server did not say what time it is" };
      const off = Math.abs(aheadOfApiMs);
      const seen = `${(off / 1000).toFixed(1)} s ${aheadOfApiMs < 0 ? "behind" : "ahead of"} the API server`;
      if (off > 60_000) return failed(seen, fix);
      return off > 2_000 ? warned(seen, fix) : passed(seen);
    },
  },
  {
    id: "time.kept",
    title: "A program keeps the clock right",
    why: "clocks of machines drift by seconds a day",
    look: (facts) => {
      const { keptBy } = known(facts.time);
      const { hasSystemd, inContainer } = known(facts.ground);
      if (keptBy !== undefined) return passed(keptBy);
      if (inContainer || !hasSystemd) return manual("no program that sets the clock runs here; its host may do so");
      return warned("neither systemd-timesyncd, chronyd nor ntpd runs", fix);
    },
  },
];
