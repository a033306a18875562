import { checksPods, labelRule, qualifiedRule, subdomainRule } from "../../../../test/support/pod-validation.ts";

checksPods("scheduling", [
  {
    name: "tolerations",
    pod: {
      tolerations: [
        { operator: "Exists" },
        { key: "a b", operator: "Exists", value: "x" },
        { operator: "Equal" },
        { key: "k", operator: "Lt", effect: "Never" },
        { key: "k", value: "no spaces", effect: "NoSchedule", tolerationSeconds: 1 },
      ],
    },
    wanted: [
      `spec.tolerations[1].key: Invalid value: "a b": name part ${qualifiedRule}`,
      "spec.tolerations[1].value: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
      'spec.tolerations[2].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
      'spec.tolerations[3].operator: Unsupported value: "Lt": supported values: "Equal", "Exists"',
      'spec.tolerations[3].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      "spec.tolerations[4].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      /^spec.tolerations\[4\].value: Invalid value: "no spaces": a valid label must be/,
    ],
  },
  {
    name: "node selector",
    pod: { nodeSelector: { "a b": "c d" } },
    wanted: [
      `spec.nodeSelector: Invalid value: "a b": name part ${qualifiedRule}`,
      /^spec.nodeSelector\[a b\]: Invalid value: "c d": a valid label must be/,
    ],
  },
  {
    name: "node affinity without terms",
    pod: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    wanted: [
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
    ],
  },
  {
    name: "node affinity",
    pod: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "k", operator: "In" },
                  { key: "k", operator: "Exists", values: ["v"] },
                  { key: "k", operator: "Gt", values: ["1", "2"] },
                  { key: "k", operator: "Near" },
                  { key: "", operator: "Exists" },
                  { key: "k", operator: "In", values: ["a b"] },
                ],
                matchFields: [
                  { key: "metadata.name", operator: "In", values: ["a", "B"] },
                  { key: "metadata.uid", operator: "Exists" },
                ],
              },
            ],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 0, preference: { matchExpressions: [{ key: "k", operator: "In", values: ["a b"] }] } },
            { weight: 101, preference: {} },
          ],
        },
      },
    },
    wanted: [
      "@.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "@.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      "@.matchExpressions[2].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
      '@.matchExpressions[3].operator: Invalid value: "Near": not a valid selector operator',
      '@.matchExpressions[4].key: Invalid value: "": name part must be non-empty',
      `@.matchExpressions[4].key: Invalid value: "": name part ${qualifiedRule}`,
      /matchExpressions\[5\].values\[0\]: Invalid value: "a b": a valid label must be/,
      "@.matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      `@.matchFields[0].values[1]: Invalid value: "B": ${subdomainRule}`,
      '@.matchFields[1].operator: Invalid value: "Exists": not a valid selector operator',
      '@.matchFields[1].key: Invalid value: "metadata.uid": not a valid field selector key',
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight: Invalid value: 101: must be in the range 1-100",
    ],
    at: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
  },
  {
    name: "pod affinity",
    pod: {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "", namespaces: ["A"], matchLabelKeys: ["a"] },
            {
              topologyKey: "a b",
              labelSelector: { matchExpressions: [{ key: "k", operator: "Is" }] },
              matchLabelKeys: ["x"],
              mismatchLabelKeys: ["x", "-"],
            },
          ],
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 200, podAffinityTerm: { topologyKey: "k" } }],
        },
      },
    },
    wanted: [
      `@[0].namespaces: Invalid value: "A": ${labelRule}`,
      "@[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
      "@[0].topologyKey: Required value: can not be empty",
      '@[1].labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
      `@[1].mismatchLabelKeys[1]: Invalid value: "-": name part ${qualifiedRule}`,
      '@[1].matchLabelKeys[0]: Invalid value: "x": exists in both matchLabelKeys and mismatchLabelKeys',
      `@[1].topologyKey: Invalid value: "a b": name part ${qualifiedRule}`,
      "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 200: must be in the range 1-100",
    ],
    at: "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
  },
  {
    name: "topology spread",
    pod: {
      topologySpreadConstraints: [
        { maxSkew: 0, topologyKey: "", whenUnsatisfiable: "Wait", minDomains: 0, matchLabelKeys: ["a"] },
        {
          maxSkew: 1,
          topologyKey: "zone",
          whenUnsatisfiable: "DoNotSchedule",
          nodeAffinityPolicy: "x",
          nodeTaintsPolicy: "y",
        },
        {
          maxSkew: 1,
          topologyKey: "zone",
          whenUnsatisfiable: "DoNotSchedule",
          labelSelector: {
            matchLabels: { a: "b" },
            matchExpressions: [
              { key: "c", operator: "In" },
              { key: "d", operator: "Exists", values: ["x"] },
            ],
          },
          matchLabelKeys: ["a", "c"],
        },
      ],
    },
    wanted: [
      "@[0].maxSkew: Invalid value: 0: must be greater than zero",
      "@[0].topologyKey: Required value: can not be empty",
      '@[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"',
      "@[0].minDomains: Invalid value: 0: must be greater than zero",
      "@[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Wait",
      "@[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
      '@[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
      '@[1].nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
      '@[1].nodeTaintsPolicy: Unsupported value: "y": supported values: "Honor", "Ignore"',
      '@[2].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector',
      '@[2].matchLabelKeys[1]: Invalid value: "c": exists in both matchLabelKeys and labelSelector',
      "@[2].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "@[2].labelSelector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ],
    at: "spec.topologySpreadConstraints",
  },
  {
    name: "scheduling gates",
    pod: { nodeName: "n", schedulingGates: [{ name: "a" }, { name: "a" }, { name: "-" }] },
    wanted: [
      'spec.schedulingGates[1]: Duplicate value: "a"',
      `spec.schedulingGates[2]: Invalid value: "-": name part ${qualifiedRule}`,
      "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ],
  },
]);
