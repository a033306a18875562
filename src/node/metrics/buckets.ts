/** Bounds of histograms, in seconds; those of the kubelet, so that dashboards keep their meaning. */
export const usual = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
export const podStarts = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];
export const statusSyncs = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];
export const runtimeOperations = Array.from({ length: 14 }, (_, power) => 0.005 * 2.5 ** power);
export const imagePulls = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
export const apiRequests = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
export const reviews = [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10];
export const driverCalls = Array.from({ length: 15 }, (_, power) => 0.1 * 400 ** (power / 14));
export const delays = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
export const steps = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
