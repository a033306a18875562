import { readdirSync, readFileSync } from "node:fs";

/** Memory that a process has in use. */
export function rssMb(pid: number): number {
  return figure(pid, "status", /^VmRSS:\s+(\d+) kB/m) / 1024;
}

/** Bytes that a process has read since its start, from files and sockets. */
export function bytesRead(pid: number): number {
  return figure(pid, "io", /^rchar: (\d+)/m);
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function figure(pid: number, file: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(`/proc/${pid}/${file}`, "utf8"))?.[1]);
}
