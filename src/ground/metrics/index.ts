// Figures that are counted as things happen, or read when somebody asks, and their text in Prometheus' form.
export { labelText, MetricText, type MetricType, withLabel } from "./metric-text.ts";
export { type Counter, type Histogram, MetricRegistry } from "./registry.ts";
