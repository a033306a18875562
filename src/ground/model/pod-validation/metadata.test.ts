import { checksPods, qualifiedRule, subdomainRule } from "../../../../test/support/pod-validation.ts";

checksPods("metadata", [
  { name: "all is well", pod: {}, wanted: [] },
  {
    name: "no name, no namespace",
    metadata: { name: "", namespace: "" },
    wanted: ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"],
  },
  {
    name: "bad names",
    metadata: { name: "Web_1", namespace: "a.b", generateName: "X-" },
    wanted: [
      `metadata.generateName: Invalid value: "X-": ${subdomainRule}`,
      `metadata.name: Invalid value: "Web_1": ${subdomainRule}`,
      'metadata.namespace: Invalid value: "a.b": must not contain dots',
    ],
  },
  {
    name: "long name",
    metadata: { name: "a".repeat(254) },
    wanted: [`metadata.name: Invalid value: "${"a".repeat(254)}": must be no more than 253 characters`],
  },
  {
    name: "labels",
    metadata: { labels: { "-a": "x", "b/c/d": "x", "/e": "x", "f/": "x", good: "no spaces" } },
    wanted: [
      `metadata.labels: Invalid value: "-a": name part ${qualifiedRule}`,
      `metadata.labels: Invalid value: "b/c/d": a qualified name ${qualifiedRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
      'metadata.labels: Invalid value: "/e": prefix part must be non-empty',
      'metadata.labels: Invalid value: "f/": name part must be non-empty',
      `metadata.labels: Invalid value: "f/": name part ${qualifiedRule}`,
      "metadata.labels[good]: Invalid value: \"no spaces\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
  {
    name: "annotations",
    metadata: { annotations: { "UPPER.example/is-fine": "x", "!": "x", big: "x".repeat(256 * 1024) } },
    wanted: [
      `metadata.annotations: Invalid value: "!": name part ${qualifiedRule}`,
      "metadata.annotations: Too long: may not be more than 262144 bytes",
    ],
  },
  {
    name: "annotations that mean something",
    metadata: {
      annotations: {
        "kubernetes.io/config.mirror": "m",
        "controller.kubernetes.io/pod-deletion-cost": "+1",
        "seccomp.security.alpha.kubernetes.io/pod": "strange",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/../x",
        "container.apparmor.security.beta.kubernetes.io/c": "strange",
        "container.apparmor.security.beta.kubernetes.io/other": "runtime/default",
      },
    },
    pod: { nodeName: "" },
    wanted: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "m": must set spec.nodeName if mirror pod annotation is set',
      'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer',
      'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: Invalid value: "strange": must be a valid seccomp profile',
      "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: Invalid value: \"../x\": must not contain '..'",
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "strange": invalid AppArmor profile name: "strange"',
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]: Invalid value: "other": container not found',
    ],
  },
  {
    name: "annotations against fields",
    metadata: {
      annotations: {
        "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/a",
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
      },
    },
    pod: { securityContext: { seccompProfile: { type: "Unconfined" }, appArmorProfile: { type: "Unconfined" } } },
    container: { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "b" } } },
    wanted: [
      "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
      "spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match",
      "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match",
    ],
  },
  {
    name: "owners and finalizers",
    metadata: {
      generation: -1,
      finalizers: ["orphan", "foregroundDeletion", "a b"],
      ownerReferences: [
        { apiVersion: "", kind: "", name: "", uid: "" },
        { apiVersion: "v1", kind: "Event", name: "e", uid: "u", controller: true },
        { apiVersion: "v1", kind: "Node", name: "n", uid: "u", controller: true },
      ],
    },
    wanted: [
      "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
      'metadata.ownerReferences[0].apiVersion: Invalid value: "": version must not be empty',
      'metadata.ownerReferences[0].kind: Invalid value: "": must not be empty',
      'metadata.ownerReferences[0].name: Invalid value: "": must not be empty',
      'metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
      'metadata.ownerReferences[1]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true}: /v1, Kind=Event is disallowed from being an owner',
      /^metadata.ownerReferences: Invalid value: .*: Only one reference can have Controller set to true. Found "true" in references for Event\/e and Node\/n$/,
      `metadata.finalizers: Invalid value: "a b": name part ${qualifiedRule}`,
      'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion","a b"]: finalizer orphan and foregroundDeletion cannot be both set',
    ],
  },
]);
