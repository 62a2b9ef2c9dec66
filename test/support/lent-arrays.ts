// Before each file: the bytes that a connection hands to its handler are overwritten as soon as the handler returns. Code that keeps a
// view of them reads other bytes from then on, and its test fails.

import { Connection } from '../../src/sockets/bun-connection.ts'

const OVERWRITTEN = 0xee
const received: (this: Connection, bytes: Uint8Array) => void = Reflect.get(Connection.prototype, 'received')

Connection.prototype.received = function (bytes: Uint8Array): void {
  const hasHandler = this.handler !== undefined
  received.call(this, bytes)
  // That of a large read is freed already.
  if (hasHandler && bytes.length > 0) bytes.fill(OVERWRITTEN)
}
