// Somebody who opens the dashboard in a browser, and what that takes.
import type { Browser, BrowserContext, Page } from "playwright-core";

export interface Opening {
  /** From going to the address until the page says that it is live, by the page's own clock. */
  readonly wallMs: number;
  /** Of it, what the page's thread worked: waiting for a busy machine is nobody's doing here. */
  readonly pageMs: number;
  /** All that came over the wire until then, as packed as it came. */
  readonly bytes: number;
  readonly foreignRequests: number;
}

/** There once the node and its pods are drawn. */
const live = ".headline .big";

/** Nothing is in its browser's cache. */
export class Viewer implements AsyncDisposable {
  readonly #context: BrowserContext;
  readonly page: Page;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
  }

  static async come(browser: Browser): Promise<Viewer> {
    const context = await browser.newContext();
    return new Viewer(context, await context.newPage());
  }

  async open(address: string): Promise<Opening> {
    const { page } = this;
    const debug = await this.#context.newCDPSession(page);
    const pieces: { readonly at: number; readonly bytes: number }[] = [];
    let foreignRequests = 0;
    let navigatedAt: number | undefined;
    debug.on("Network.dataReceived", ({ timestamp, encodedDataLength }) => {
      pieces.push({ at: timestamp, bytes: encodedDataLength });
    });
    debug.on("Network.requestWillBeSent", ({ request, timestamp }) => {
      navigatedAt ??= timestamp;
      if (new URL(request.url).host !== new URL(address).host) foreignRequests++;
    });
    await debug.send("Network.enable");
    await debug.send("Performance.enable", { timeDomain: "threadTicks" });
    await page.addInitScript(`
      const watcher = new MutationObserver(() => {
        if (document.querySelector("${live}") === null) return;
        watcher.disconnect();
        globalThis.liveAt = performance.now();
      });
      watcher.observe(document, { childList: true, subtree: true, attributes: true });`);
    await page.goto(address);
    await page.waitForSelector(live);
    const { metrics } = await debug.send("Performance.getMetrics");
    const worked = metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
    const wallMs = Number(await page.evaluate("globalThis.liveAt"));
    // What comes later belongs to looking on, though it may be here before we hear that the page is live.
    const until = (navigatedAt ?? Number.NaN) + wallMs / 1000;
    const bytes = pieces.filter(({ at }) => at <= until).reduce((sum, each) => sum + each.bytes, 0);
    return { wallMs, pageMs: worked * 1000, bytes, foreignRequests };
  }

  /** Resolves with the time when the row of the pod is drawn otherwise than now, whatever its ages say. */
  async rowChanged(pod: string): Promise<number> {
    const changed = await this.page.evaluate(`new Promise((resolve) => {
      const rowOf = () => [...document.querySelectorAll("tbody tr")].find((row) => row.textContent.startsWith("${pod}-"));
      const textOf = () => rowOf()?.textContent.replace(/[0-9]+ (s|min)/g, "");
      const before = textOf();
      const watcher = new MutationObserver(() => {
        if (textOf() === before) return;
        watcher.disconnect();
        resolve(Date.now());
      });
      watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
    })`);
    return Number(changed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
