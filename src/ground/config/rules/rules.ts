import type { RuleContext } from "./rule-context.ts";
import { checkEviction } from "./rules-eviction.ts";
import { checkFields } from "./rules-fields.ts";
import { checkImages } from "./rules-images.ts";
import { checkTracing } from "./rules-logging.ts";
import { checkManagers } from "./rules-managers.ts";
import { checkNode } from "./rules-node.ts";
import { checkResources } from "./rules-resources.ts";
import { checkServer } from "./rules-server.ts";

/**
 * Every rule of the configuration but those of logging: what the kubelet checks in one go, and what it would only
 * find out later, while building its parts.
 */
export function checkRules(context: RuleContext): void {
  checkFields(context);
  checkServer(context);
  checkNode(context);
  checkImages(context);
  checkResources(context);
  checkManagers(context);
  checkEviction(context);
  checkTracing(context);
}
