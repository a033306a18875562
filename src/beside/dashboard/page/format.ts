/** 1.2 GiB; three digits at most. */
export function inBytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let amount = value;
  let unit = 0;
  while (Math.abs(amount) >= 1000 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${amount >= 100 || unit === 0 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`;
}

/** As `nodelet why` and events say how far a pull is. */
export function inMegabytes(value: number): string {
  return `${(value / 1e6).toFixed(1)} MB`;
}

/** 0.25 cores as 250m, as quantities of Kubernetes are written. */
export function cores(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 0.0005) return "0";
  return value < 1 ? `${Math.max(1, Math.round(value * 1000))}m` : value.toFixed(value < 10 ? 2 : 1);
}

export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : String(Math.round(value));
}

/** 350 ms, 4.2 s, 42 s, 7 min, 3 h 12 min, 2 d 4 h. */
export function shortSpan(ms: number): string {
  if (ms < 0) return `-${shortSpan(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10} s`;
  return longSpan(ms);
}

/** Whole seconds and more: for what counts on while somebody looks. */
export function longSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 || hours >= 10 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 || days >= 10 ? `${days} d` : `${days} d ${hours % 24} h`;
}

export function absolute(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? ""
    : date
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z/, " UTC");
}

/** 14:03:27 in the reader's own zone. */
export function clockTime(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
