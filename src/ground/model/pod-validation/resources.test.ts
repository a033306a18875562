import { checksPods, labelRule, qualifiedRule } from "../../../../test/support/pod-validation.ts";

checksPods("resources", [
  {
    name: "requests above limits",
    container: { resources: { limits: { cpu: "0.5", memory: "1Gi" }, requests: { cpu: "1", memory: "1024Mi" } } },
    wanted: ['@.requests: Invalid value: "1": must be less than or equal to cpu limit of 500m'],
    at: "spec.containers[0].resources",
  },
  {
    name: "names",
    container: {
      resources: {
        requests: { "a b": "1", disk: "1", pods: "1", storage: "1" },
        limits: { "kubernetes.io/native": "1", "requests.example.com/x": "1", "example.com/gpu": "1" },
      },
    },
    wanted: [
      '@.limits[requests.example.com/x]: Invalid value: "requests.example.com/x": doesn\'t follow extended resource name standard',
      '@.requests[requests.example.com/x]: Invalid value: "requests.example.com/x": doesn\'t follow extended resource name standard',
      `@.requests[a b]: Invalid value: "a b": name part ${qualifiedRule}`,
      '@.requests[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
      '@.requests[pods]: Invalid value: "pods": must be a standard resource for containers',
      '@.requests[storage]: Invalid value: "storage": must be a standard resource for containers',
    ],
    at: "spec.containers[0].resources",
  },
  {
    name: "amounts",
    container: { resources: { limits: { cpu: "-1", "example.com/gpu": "1.5" } } },
    wanted: [
      '@.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      '@.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
      '@.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      '@.requests[example.com/gpu]: Invalid value: "1500m": must be an integer',
    ],
    at: "spec.containers[0].resources",
  },
  {
    name: "exact resources",
    container: {
      resources: { limits: { "example.com/gpu": "2" }, requests: { "example.com/gpu": "1", "example.com/fpga": "1" } },
    },
    wanted: [
      '@.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2',
      "@.limits: Required value: Limit must be set for non overcommitable resources (example.com/fpga)",
    ],
    at: "spec.containers[0].resources",
  },
  {
    name: "huge pages",
    container: { resources: { limits: { "hugepages-2Mi": "3Mi", "hugepages-x": "1" } } },
    wanted: [
      '@.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      '@.limits[hugepages-x]: Invalid value: "1": 1 is not positive integer multiple of hugepages-x',
      '@.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      '@.requests[hugepages-x]: Invalid value: "1": 1 is not positive integer multiple of hugepages-x',
      "@: Forbidden: HugePages require cpu or memory",
    ],
    at: "spec.containers[0].resources",
  },
  {
    name: "claims without any in the pod",
    container: { resources: { claims: [{ name: "x", request: "A" }] } },
    wanted: [
      `@.claims[0].request: Invalid value: "A": ${labelRule}`,
      '@.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
    at: "spec.containers[0].resources",
  },
  {
    name: "of the pod",
    pod: {
      resources: {
        limits: { cpu: "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi" },
        requests: { cpu: "500m" },
        claims: [],
      },
    },
    container: {
      resources: { limits: { cpu: "2", "hugepages-2Mi": "4Mi" }, requests: { cpu: "800m" } },
    },
    wanted: [
      "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
      'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "memory", "hugepages-<size>"',
      'spec.resources.requests[cpu]: Invalid value: "500m": must be greater than or equal to aggregate container requests of 800m',
      'spec.resources.requests[hugepages-2Mi]: Invalid value: "2Mi": must be greater than or equal to aggregate container requests of 4Mi',
      'spec.resources.limits[hugepages-2Mi]: Invalid value: "2Mi": must be greater than or equal to aggregate container limits of 4Mi',
      'spec.containers[0].resources.limits[cpu]: Invalid value: "2": must be less than or equal to pod limits of 1',
      'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "4Mi": must be less than or equal to pod limits of 2Mi',
    ],
  },
  {
    name: "of the pod on Windows",
    pod: { os: { name: "windows" }, resources: { limits: { cpu: "1" } } },
    wanted: ["spec.resources: Forbidden: may not be set for a windows pod"],
  },
]);
