import { json, type Reply } from "../http/reply.ts";
import type { JsonObject } from "../json.ts";
import { apiVersionOf } from "../kinds/index.ts";
import { resourcesOf, type ServedResource, servedGroups } from "./served.ts";

/** Tells clients which groups, versions and resources there are. */
export function discover(path: string, accept: string): Reply | undefined {
  const segments = path.split("/").filter((segment) => segment !== "");
  const [root, group = "", version = ""] = segments;
  if (root === "api" && segments.length === 1) return aggregated(accept, "core") ?? json(coreVersions);
  if (root === "api" && segments.length === 2) return resourceList("", group);
  if (root !== "apis") return undefined;
  switch (segments.length) {
    case 1:
      return aggregated(accept, "named") ?? json(groupList());
    case 2: {
      const found = servedGroups.find((served) => served.group === group);
      return found === undefined ? undefined : json({ kind: "APIGroup", apiVersion: "v1", ...describeGroup(found) });
    }
    case 3:
      return resourceList(group, version);
    default:
      return undefined;
  }
}

const coreVersions = { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };

const namedGroups = servedGroups.filter(({ group }) => group !== "");

function groupList(): JsonObject {
  return { kind: "APIGroupList", apiVersion: "v1", groups: namedGroups.map(describeGroup) };
}

function describeGroup(served: { readonly group: string; readonly version: string }): JsonObject {
  const version = { groupVersion: apiVersionOf(served), version: served.version };
  return { name: served.group, versions: [version], preferredVersion: version };
}

function resourceList(group: string, version: string): Reply | undefined {
  const resources = resourcesOf(group, version);
  if (resources.length === 0) return undefined;
  const groupVersion = apiVersionOf({ group, version });
  return json({ kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: resources.flatMap(describe) });
}

function describe(resource: ServedResource): readonly JsonObject[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources } = resource;
  const own = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  };
  const parts = subresources.map(({ name, kind: partKind, group, version, verbs: partVerbs }) => ({
    name: `${plural}/${name}`,
    singularName: "",
    namespaced,
    ...(group !== undefined && { group, version }),
    kind: partKind,
    verbs: partVerbs,
  }));
  return [own, ...parts];
}

/** Everything in one answer, for clients that ask for it so. */
function aggregated(accept: string, which: "core" | "named"): Reply | undefined {
  const isAsked = accept.split(",").some((type) => {
    const words = type.split(";").map((word) => word.trim());
    return words.includes("as=APIGroupDiscoveryList") && words.includes("v=v2");
  });
  if (!isAsked) return undefined;
  const groups = which === "core" ? servedGroups.filter(({ group }) => group === "") : namedGroups;
  const items = groups.map(({ group, version }) => ({
    metadata: { ...(group !== "" && { name: group }), creationTimestamp: null },
    versions: [{ version, freshness: "Current", resources: resourcesOf(group, version).map(describeAggregated) }],
  }));
  return {
    type: "json",
    code: 200,
    contentType: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    body: { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items },
  };
}

function describeAggregated(resource: ServedResource): JsonObject {
  const { group, version, kind, plural, singular, namespaced, verbs, shortNames, categories, subresources } = resource;
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map((part) => ({
        subresource: part.name,
        responseKind: { group: part.group ?? group, version: part.version ?? version, kind: part.kind },
        verbs: part.verbs,
      })),
    }),
  };
}
