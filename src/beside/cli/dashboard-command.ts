import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { FieldReader, isMissing, runProgram, savePrivateFile } from "../../ground/base/index.ts";
import { printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { agentRootOf, askAgent } from "./running-agent.ts";
import { dashboardDescription } from "./table/node-commands.ts";
import { unreadable } from "./unreadable.ts";

/** The address of the agent's dashboard, with a token for one login. */
export const dashboardCommand = defineCommand(dashboardDescription, async ({ options }, io) => {
  const rootDir = await agentRootOf(io, options["root-dir"]);
  const address = await dashboardAddress(rootDir);
  if (address === undefined) {
    // One that is not there has no dashboard either, and flags would not help.
    await askAgent(io, options, (client) => client.health(io.signal));
    throw new Error(
      `the agent of ${rootDir} has no dashboard; give it --dashboard-address=127.0.0.1:4194, or see its log for why not`,
    );
  }
  if (options.open) {
    const program = { program: "xdg-open", args: [await doorFile(rootDir, address)] };
    await runProgram(program, io.clock, io.signal);
  } else printAnswer(io, options, "DashboardAddress", { address }, () => `${address}\n`);
  return 0;
});

/** With the token for the next login; undefined: the agent has no dashboard, or does not run. */
export async function dashboardAddress(rootDir: string): Promise<string | undefined> {
  const problems: string[] = [];
  const file = FieldReader.of(await readTokenFile(join(rootDir, "nodelet", "dashboard.json")), "", problems);
  const [address, token] = [file.string("address"), file.string("token")];
  if (problems.length > 0 || !(await isListening(address))) return undefined;
  return `http://${address}/dashboard/#token=${token}`;
}

/** Undefined where it says nothing: there is none, or a loss of power has emptied it. */
async function readTokenFile(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return undefined;
    throw unreadable(error, path);
  }
}

/**
 * A page that leads to the address. Everybody on the machine sees what a program is started with, and who is first to
 * use the token is in: the browser reads it from a file that only we may read.
 */
async function doorFile(rootDir: string, address: string): Promise<string> {
  const path = join(rootDir, "nodelet", "dashboard-door.html");
  await savePrivateFile(path, `<!doctype html><meta http-equiv="refresh" content="0; url=${address}">\n`);
  return path;
}

const answersWithinMs = 1_000;

/** The file may be of an agent that is gone. */
async function isListening(address: string): Promise<boolean> {
  const { hostname, port } = new URL(`http://${address}`);
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), timeout: answersWithinMs });
  return await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("timeout", () => resolve(false));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}
