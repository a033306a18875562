import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { dashboardAddress } from "../../src/beside/cli/dashboard-command.ts";
import { ApiCluster } from "./api-cluster.ts";
import { startContainerd, type TestContainerd } from "./containerd.ts";
import { freePort } from "./free-port.ts";
import { patienceMs, until } from "./until.ts";

export const browserPath = process.env["NODELET_BROWSER"] ?? "/usr/bin/chromium-headless-shell";
const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
export const pictures = process.env["NODELET_PICTURES"] ?? join(process.cwd(), "dashboard-pictures");

/** A real containerd, the built agent with its dashboard, a local API server, and a browser. */
export class DashboardLab implements AsyncDisposable {
  readonly containerd: TestContainerd;
  readonly cluster: ApiCluster;
  readonly browser: Browser;
  readonly port: number;
  /** What browsers complained of: nothing is to be in here, ever. */
  readonly complaints: string[] = [];

  private constructor(parts: Pick<DashboardLab, "containerd" | "cluster" | "browser" | "port">) {
    this.containerd = parts.containerd;
    this.cluster = parts.cluster;
    this.browser = parts.browser;
    this.port = parts.port;
  }

  static async start(): Promise<DashboardLab> {
    const containerd = await startContainerd();
    const port = await freePort();
    const flags = [`--dashboard-address=127.0.0.1:${port}`];
    const cluster = await ApiCluster.start(
      containerd,
      { clusterDNS: ["10.96.0.10"], clusterDomain: "cluster.local" },
      "member",
      flags,
    );
    mkdirSync(pictures, { recursive: true });
    const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
    return new DashboardLab({ containerd, cluster, browser, port });
  }

  /** The address with a token that was not used yet. */
  async address(): Promise<string> {
    const address = await dashboardAddress(this.cluster.agent.rootDir);
    if (address === undefined) throw new Error("the agent has no dashboard");
    return address;
  }

  /** A browser that is logged in; its complaints are collected. */
  async visitor(options: Parameters<Browser["newContext"]>[0] = {}): Promise<Visitor> {
    const context = await this.browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
    context.setDefaultTimeout(patienceMs);
    const page = await context.newPage();
    this.#listen(page, `127.0.0.1:${this.port}`);
    await page.goto(await this.address());
    await page.waitForSelector(".link-state.good");
    return new Visitor(context, page);
  }

  /** A browser behind `kubectl proxy`, below the prefix of the node's proxy; it has no cookie of ours. */
  async proxied(): Promise<Visitor> {
    const port = await freePort();
    const kubectl = process.env["NODELET_KUBECTL"] ?? "kubectl";
    const args = ["proxy", `--port=${port}`, `--kubeconfig=${this.cluster.adminKubeconfig}`];
    const proxy = spawn(kubectl, args, { stdio: "ignore" });
    // Where it passes nothing on, the test ends without it.
    proxy.unref();
    process.once("exit", () => proxy.kill("SIGKILL"));
    const context = await this.browser.newContext({ viewport: { width: 1360, height: 900 } });
    context.setDefaultTimeout(patienceMs);
    const page = await context.newPage();
    this.#listen(page, `127.0.0.1:${port}`);
    const address = `http://127.0.0.1:${port}/api/v1/nodes/test-node/proxy/dashboard/`;
    await until("kubectl passes requests on", async () => {
      const response = await page.goto(address).catch(() => null);
      return response?.status() === 200;
    });
    await page.waitForSelector(".link-state.good");
    return new Visitor(context, page, () => proxy.kill("SIGKILL"));
  }

  /** Nothing but the dashboard may be asked, and nothing is to be complained of. */
  #listen(page: Page, host: string): void {
    // The browser itself tells of requests that fail; when the agent is away they do.
    const isOurs = (text: string): boolean => !/^Failed to load resource/.test(text);
    page.on("console", (said) => {
      if (isOurs(said.text())) this.complaints.push(said.text());
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("request", (request) => {
      if (new URL(request.url()).host !== host) this.complaints.push(`asked for ${request.url()}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.cluster[Symbol.asyncDispose]();
    await this.containerd[Symbol.asyncDispose]();
  }
}

/** Somebody who looks at the dashboard. */
export class Visitor implements AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;

  readonly #onLeave: () => void;

  constructor(context: BrowserContext, page: Page, onLeave: () => void = () => {}) {
    this.context = context;
    this.page = page;
    this.#onLeave = onLeave;
  }

  /** Goes to a page by its address after `#/`. */
  async goTo(path: string): Promise<void> {
    // As text: this runs in the page, of which these sources know nothing.
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`);
  }

  async text(): Promise<string> {
    return (await this.page.locator("main").textContent()) ?? "";
  }

  async untilText(what: string | RegExp): Promise<void> {
    await until(`the page says ${what}`, async () => {
      const text = await this.text();
      return typeof what === "string" ? text.includes(what) : what.test(text);
    });
  }

  /** Of the whole page, or of what is on the screen. */
  async picture(name: string, what: "page" | "screen" = "page"): Promise<void> {
    const path = join(pictures, `${name}.png`);
    if (what === "screen") return void (await this.page.screenshot({ path }));
    // On a screen as high as the page: what is below the screen, browsers do not draw.
    const before = this.page.viewportSize();
    const height = Number(await this.page.evaluate("document.documentElement.scrollHeight"));
    if (before !== null) await this.page.setViewportSize({ ...before, height: Math.max(before.height, height) });
    await this.page.waitForTimeout(300);
    await this.page.screenshot({ path });
    if (before !== null) await this.page.setViewportSize(before);
  }

  /** What axe finds wrong, one line each. */
  async barriers(): Promise<readonly string[]> {
    await this.page.evaluate(await readFile(axePath, "utf8"));
    const { violations } = await this.page.evaluate(() =>
      (
        globalThis as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> };
        }
      ).axe.run(),
    );
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#onLeave();
    await this.context.close();
  }
}
