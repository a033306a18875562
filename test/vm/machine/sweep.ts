// Run by scripts/test-vm.mjs at the end: removes what a test that was killed left on the disk.
import { sweepMachineDirectories } from "./machine-directories.ts";

await sweepMachineDirectories();
