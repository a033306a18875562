// What the kernel kills for want of memory: which container it was of, and whether the whole machine had none left.
export { killsByPod } from "./kills-by-pod.ts";
export { OomWatch } from "./oom-watch.ts";
export { SeenRecords } from "./seen-records.ts";
export { type TellOfKillPorts, tellOfKill } from "./tell-of-kill.ts";
