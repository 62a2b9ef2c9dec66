// A download, or an upload, whose reader stops after a second, through a server and a client in this process. Prints how
// many bytes the server and the client keep: those that left the writer and did not reach the reader.

import { dlopen, ptr } from 'bun:ffi'
import type { Socket } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { startTcpTunnel } from './tcp-tunnel.ts'

const isUpload = process.argv[2] === 'up'
const { ioctl } = dlopen('libc.so.6', { ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' } }).symbols
/** Bytes that were received and not read, and bytes that were written and not acknowledged. */
const [FIONREAD, SIOCOUTQ] = [0x541b, 0x5411]
const count = new Int32Array(new ArrayBuffer(4))

/** What the kernel keeps for one of this script's own ends. */
function kept(socket: Socket | undefined, request: number): number {
  const raw: unknown = socket && Reflect.get(socket, 'raw')
  const fd: unknown = typeof raw === 'object' && raw !== null ? Reflect.get(raw, 'fd') : undefined
  if (typeof fd !== 'number' || ioctl(fd, request, ptr(count)) !== 0) throw new Error('no count')
  return count[0]!
}

const piece = new Uint8Array(262_144)

/** Writes for ever. */
class Writer {
  sentBytes = 0
  socket: Socket | undefined
  received(): void {}
  ended(): void {}
  closed(): void {}
  drained(): void {}

  start(socket: Socket): void {
    this.socket = socket
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

  stop(): void {
    this.socket?.pause()
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
let underWay = -1
while (underWay !== writer.sentBytes - reader.receivedBytes) {
  underWay = writer.sentBytes - reader.receivedBytes
  await Bun.sleep(300) // nothing tells that no more is taken
}
const heldBytes = underWay - kept(reader.socket, FIONREAD) - kept(writer.socket, SIOCOUTQ)
console.log(JSON.stringify({ heldBytes, receivedBytes: reader.receivedBytes }))
process.exit()
