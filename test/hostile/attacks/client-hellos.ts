// The port of TLS tunnels: hellos for names that are no tunnels, and hellos that never end.

import type { Attack } from '../scene/attack.ts'
import { closed } from '../scene/wait.ts'
import { add, loops, open, send } from '../scene/wire.ts'

const PARTIAL = 2_000

/** A ClientHello with a server name and nothing else of interest (RFC 8446 section 4.1.2). */
function clientHello(host: string): Buffer {
  const name = Buffer.from(host)
  const u16 = (value: number): Buffer => Buffer.from([value >>> 8, value & 0xff])
  const serverName = Buffer.concat([u16(name.length + 3), Buffer.from([0]), u16(name.length), name])
  const extensions = Buffer.concat([u16(0), u16(serverName.length), serverName])
  const body = Buffer.concat([
    u16(0x0303),
    Buffer.alloc(32, 7),
    Buffer.from([0]),
    u16(2),
    u16(0x1301),
    Buffer.from([1, 0]),
    u16(extensions.length),
    extensions,
  ])
  const message = Buffer.concat([Buffer.from([1, 0]), u16(body.length), body])
  return Buffer.concat([Buffer.from([0x16, 3, 1]), u16(message.length), message])
}

export const attacks: readonly Attack[] = [
  {
    name: 'client-hellos',
    does: 'TLS hellos for names that are no tunnels, 50 at a time',
    attack: (target, tally, until) =>
      loops(50, until, async index => {
        const socket = await open({ port: target.tlsPort })
        add(tally, 'hellos')
        await send(socket, clientHello(`nobody-${index}.localhost`))
        await closed(socket, until)
        socket.destroy()
      }),
  },
  {
    name: 'partial-hellos',
    does: `${PARTIAL} connections whose TLS hello stops before its end`,
    attack: (target, tally, until) =>
      loops(
        PARTIAL,
        until,
        async () => {
          const socket = await open({ port: target.tlsPort })
          add(tally, 'connections')
          const hello = clientHello(`${'long.'.repeat(40)}localhost`)
          await send(socket, hello.subarray(0, 20 + Math.floor(Math.random() * (hello.length - 21))))
          await closed(socket, until)
          socket.destroy()
        },
        200,
      ),
  },
]
