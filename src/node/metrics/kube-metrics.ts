import { ApiError, type RequestReport } from "../../connections/kube/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import type { Counter, Histogram, MetricRegistry } from "../../ground/metrics/index.ts";
import type { Reviews } from "../server/index.ts";
import { apiRequests, reviews } from "./buckets.ts";

interface Reviewed {
  readonly total: Counter<"code">;
  readonly durations: Histogram<"code">;
}

/** Requests to the API server, and what it is asked about those who ask us. */
export class KubeMetrics {
  readonly #requests;
  readonly #durations;
  readonly #authentication;
  readonly #authorization;

  constructor(registry: MetricRegistry) {
    this.#requests = registry.counter("rest_client_requests_total", "[ALPHA] Requests to the API server", [
      "code",
      "method",
      "host",
    ]);
    this.#durations = registry.histogram(
      "rest_client_request_duration_seconds",
      "[ALPHA] How long the API server took to begin its answers",
      apiRequests,
      ["verb", "host"],
    );
    const reviewed = (name: string, what: string): Reviewed => ({
      total: registry.counter(`${name}_total`, `[ALPHA] ${what}`, ["code"]),
      durations: registry.histogram(`${name}_duration_seconds`, `[ALPHA] How long took: ${what}`, reviews, ["code"]),
    });
    this.#authentication = reviewed("apiserver_delegated_authn_request", "Token reviews by the API server");
    this.#authorization = reviewed("apiserver_delegated_authz_request", "Authorization reviews by the API server");
  }

  /** For the client of the API server at this host. */
  watch(host: string): (report: RequestReport) => void {
    return ({ method, status, durationMs }) => {
      this.#requests.inc({ code: status === undefined ? "<error>" : String(status), method, host });
      this.#durations.observe({ verb: method, host }, durationMs / 1000);
    };
  }

  /** The same reviews, counted. */
  reviews(inner: Reviews, clock: Clock): Reviews {
    return {
      token: (...args) => this.#review(this.#authentication, () => inner.token(...args), clock),
      access: (...args) => this.#review(this.#authorization, () => inner.access(...args), clock),
      isTransient: (error) => inner.isTransient(error),
    };
  }

  async #review<Answer>({ total, durations }: Reviewed, ask: () => Promise<Answer>, clock: Clock): Promise<Answer> {
    const startedAt = clock.monotonic();
    let code = "201";
    try {
      return await ask();
    } catch (error) {
      code = error instanceof ApiError ? String(error.code) : "<error>";
      throw error;
    } finally {
      total.inc({ code });
      durations.observe({ code }, (clock.monotonic() - startedAt) / 1000);
    }
  }
}
