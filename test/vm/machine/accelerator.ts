import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import type { Base } from "./base.ts";

export interface Accelerator {
  readonly accel: string;
  readonly cpu: string;
}

/** Many processors' worth of instructions are emulated one by one: a plain one boots faster than one with everything. */
const emulated: Accelerator = { accel: "tcg,thread=multi", cpu: "Westmere,aes=off,pclmulqdq=off" };
const trialMs = 10_000;

/** Some hosts offer a /dev/kvm on which no stock kernel starts: it counts only when a kernel has spoken. */
export async function findAccelerator({ kernel }: Base): Promise<Accelerator> {
  const asked = process.env["NODELET_VM_ACCEL"];
  if (asked === "tcg") return emulated;
  if (asked === "kvm") return { accel: "kvm", cpu: "host" };
  if (asked !== undefined) throw new Error(`NODELET_VM_ACCEL is "${asked}", wanted kvm or tcg`);
  return mayUseKvm() && (await kernelSpeaks(kernel)) ? { accel: "kvm", cpu: "host" } : emulated;
}

function mayUseKvm(): boolean {
  try {
    accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

async function kernelSpeaks(kernel: string): Promise<boolean> {
  const machine = ["-accel", "kvm", "-cpu", "host", "-m", "512", "-nographic", "-no-reboot"];
  const trial = spawn("qemu-system-x86_64", [...machine, "-kernel", kernel, "-append", "console=ttyS0 panic=-1"], {
    stdio: ["ignore", "pipe", "ignore"],
    timeout: trialMs,
    killSignal: "SIGKILL",
  });
  return await new Promise((resolve) => {
    let text = "";
    trial.stdout.on("data", (chunk) => {
      text += String(chunk);
      // The last thing it does without a disk.
      if (!text.includes("Unable to mount root fs")) return;
      trial.kill("SIGKILL");
      resolve(true);
    });
    trial.once("error", () => resolve(false));
    trial.once("close", () => resolve(false));
  });
}
