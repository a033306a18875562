import type { PodUid, SandboxId } from "../../ground/model/index.ts";

/** Where hints come from; `none`: the runtime offers no events and only looking again finds changes. */
export type RuntimeEventSource = "cri" | "containerd" | "none";

/** Something changed: look again. A hint never says what is true now, and a lost one must be healed by relisting. */
export type RuntimeEvent =
  /** Changes before this moment may have gone unnoticed: look at everything. */
  | { readonly kind: "gap"; readonly source: RuntimeEventSource }
  | {
      readonly kind: "created" | "started" | "stopped" | "deleted" | "oom" | "changed";
      /** A container, or a sandbox: runtimes report a sandbox's own process alike. */
      readonly id: string;
      readonly podUid?: PodUid;
      readonly sandboxId?: SandboxId;
    };
