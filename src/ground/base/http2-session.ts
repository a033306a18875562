/**
 * Ends an HTTP/2 session from outside its own callbacks. Node 20 frees what it goes on using when a session is destroyed
 * in one of them after the peer has said goodbye: the process ends with a corrupted heap.
 */
export function destroySession(session: { destroy(reason?: Error): void }, reason?: Error): void {
  setImmediate(() => session.destroy(reason));
}
