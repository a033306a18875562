/**
 * Ends an HTTP/2 session and the connection below it, from outside the session's own callbacks. Node 20 frees what it goes
 * on using when a session is destroyed in one of them after the peer has said goodbye: the process ends with a corrupted
 * heap. And once a peer has said goodbye, Node leaves it to that peer to close the connection, which may never happen.
 */
export function destroySession(
  session: { destroy(reason?: Error): void },
  connection: { destroy(): unknown },
  reason?: Error,
): void {
  setImmediate(() => {
    session.destroy(reason);
    // In a later turn, so that our own goodbye goes out.
    setImmediate(() => connection.destroy());
  });
}
