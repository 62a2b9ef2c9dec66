// A download, or an upload, whose reader stops after a second, through a server and a client in this process. Prints how
// many bytes left the writer and did not reach the reader, whose own buffer is small.

import { dlopen, ptr } from 'bun:ffi'
import type { Socket } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { startTcpTunnel } from './tcp-tunnel.ts'

const isUpload = process.argv[2] === 'up'
const { setsockopt } = dlopen('libc.so.6', {
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
}).symbols
const small = new Int32Array([32_768])
const piece = new Uint8Array(262_144)

/** Writes for ever. */
class Writer {
  sentBytes = 0
  received(): void {}
  ended(): void {}
  closed(): void {}
  drained(): void {}

  start(socket: Socket): void {
    this.drained = () => {
      for (;;) {
        const taken = socket.write(piece)
        this.sentBytes += taken
        if (taken < piece.length) return
      }
    }
    this.drained()
  }
}

/** Reads until it stops. */
class Reader {
  receivedBytes = 0
  socket: Socket | undefined
  drained(): void {}
  ended(): void {}
  closed(): void {}

  received(bytes: Uint8Array): void {
    this.receivedBytes += bytes.length
  }

  start(socket: Socket): void {
    this.socket = socket
  }

  /** Reads no more, and has the kernel keep little for it. */
  stop(): void {
    this.socket?.pause()
    const raw: unknown = this.socket && Reflect.get(this.socket, 'raw')
    const fd: unknown = typeof raw === 'object' && raw !== null ? Reflect.get(raw, 'fd') : undefined
    // SOL_SOCKET, SO_RCVBUF
    if (typeof fd !== 'number' || setsockopt(fd, 1, 8, ptr(small), 4) !== 0)
      throw new Error('no small buffer')
  }
}

const [writer, reader] = [new Writer(), new Reader()]
const [atOrigin, atVisitor] = isUpload ? [reader, writer] : [writer, reader]
const origin = listenBun({
  hostname: '127.0.0.1',
  accept(socket) {
    setImmediate(() => atOrigin.start(socket))
    return atOrigin
  },
})
const tunnel = await startTcpTunnel(origin.port)
atVisitor.start(await dialBun({ host: '127.0.0.1', port: tunnel.port }, atVisitor))
await Bun.sleep(1_000) // at full speed, while buffers grow
reader.stop()
let heldBytes = -1
while (heldBytes !== writer.sentBytes - reader.receivedBytes) {
  heldBytes = writer.sentBytes - reader.receivedBytes
  await Bun.sleep(300) // nothing tells that no more is taken
}
console.log(JSON.stringify({ heldBytes, receivedBytes: reader.receivedBytes }))
process.exit()
