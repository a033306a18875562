// Run by scripts/test-vm.mjs before the tests: makes what they start from, and shows how far it is.
import { VirtualMachine } from "./machine.ts";
import { sweepMachineDirectories } from "./machine-directories.ts";

await sweepMachineDirectories();
await VirtualMachine.prepare();
