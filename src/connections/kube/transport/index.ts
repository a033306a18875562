// Connections to the API server: dialling, proxies, HTTP/2 and HTTP/1.1, and noticing when they are dead.
export { ConnectionError, type HttpRequest, type HttpResponse } from "./http.ts";
export { Transport, type TransportSettings } from "./transport.ts";
