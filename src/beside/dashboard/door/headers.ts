/**
 * What every answer says to the browser. Scripts, styles and data come from us alone, text never becomes markup or
 * script, and no other site may frame the pages, fetch from them or learn where their reader came from.
 */
export const safetyHeaders = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** What is true at this moment only. */
export const neverKept = "no-store";
/** The name of the file holds a digest of its content. */
export const keptForGood = "public, max-age=31536000, immutable";
