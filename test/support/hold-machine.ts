// Starts a machine with a pod, says so and waits: for tests of what happens when its process is killed.
import { startContainerd } from "./containerd.ts";
import { runRawPod } from "./raw-pod.ts";

const { endpoint, images, cgroupRoot } = await startContainerd();
await runRawPod({
  endpoint,
  name: "held",
  image: images.busybox,
  command: ["sleep", "3600"],
  cgroupParent: cgroupRoot,
});
process.stdout.write("running\n");
setInterval(() => {}, 60_000);
