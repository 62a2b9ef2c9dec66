// tmp
import { TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { Carrier, CarrierHandler } from '../../session/carrier.ts'
import { WebSocketCarrier } from '../../session/carriers/websocket.ts'
import type { SocketHandler, Socket } from '../../socket.ts'
import { dial } from '../../sockets/dial.ts'
import type { ClientSettings } from '../settings.ts'
export async function dialCarrier(settings: ClientSettings, signal: AbortSignal, accept: (carrier: Carrier) => CarrierHandler): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  let text = ''
  let inner: SocketHandler | undefined
  const handler: SocketHandler = {
    received(bytes) {
      if (inner) return inner.received(bytes)
      const s = Buffer.from(bytes).toString('latin1'); text += s
      const at = text.indexOf('\r\n\r\n')
      if (at < 0) return
      if (!text.startsWith('HTTP/1.1 101')) { reject(new TunnelError('SERVER_REFUSED', text)); return }
      const c = new WebSocketCarrier(socket, { role: 'client', scheduler: eventLoop, maskKey: () => (Math.random() * 2 ** 32) | 0 })
      c.handler = accept(c)
      inner = c.socketHandler
      resolve(true)
      const rest = text.slice(at + 4)
      if (rest) inner.received(Buffer.from(rest, 'latin1'))
    },
    drained() { inner?.drained() }, ended() { inner?.ended() }, closed(e) { inner?.closed(e); reject(e) },
  }
  let socket: Socket
  socket = await dial(settings.server.address, handler)
  socket.write(Buffer.from(`GET / HTTP/1.1\r\nHost: ${settings.server.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: localtunnels.streams.1\r\n\r\n`))
  return promise
}
