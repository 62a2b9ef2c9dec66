// Texts that cost the server memory or time: messages that never end, and deep or wide JSON of no known type.

import type { Socket } from 'node:net'
import type { Attack } from '../scene/attack.ts'
import { closed } from '../scene/wait.ts'
import { add, Control, controlFrame, loops, open, send, textFrame } from '../scene/wire.ts'

/** Just below what a message may have. */
const UNFINISHED_BYTES = 66_000_000
const PIECE = Buffer.alloc(1024 * 1024, 'a')

/** The head of a masked text message of so many bytes. */
function textHead(bytes: number): Buffer {
  const head = Buffer.alloc(14)
  head[0] = 0x81
  head[1] = 0xff
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

const DEPTH = 30_000
const nested = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`
const wide = `{${Array.from({ length: 4_000 }, (_, i) => `"k${i}":{}`).join(',')}}`

export const attacks: readonly Attack[] = [
  {
    name: 'json-unfinished',
    does: '8 clients of the JSON wire that owe an answer, each with one of 66 MB that never ends',
    // 128 MiB of messages and one of 64 MiB on top, a read for each client, and what the collector has not seen yet.
    bounds: { serverMb: 350 },
    attack: (target, tally, until) =>
      loops(
        8,
        until,
        async index => {
          const control = await Control.open(target, { wire: 'json', token: target.token })
          // Only an answer that is owed may be long.
          const asked = Promise.withResolvers<void>()
          let visitor: Socket | undefined
          control.heard = ({ type }) => {
            if (type === 'request') asked.resolve()
            if (type !== 'registered') return
            void open({ port: target.port }).then(socket => {
              visitor = socket
              socket.write(`GET / HTTP/1.1\r\nHost: unfinished-${index}.localhost\r\n\r\n`)
            })
          }
          await send(
            control.socket,
            textFrame(JSON.stringify({ type: 'ready', subdomain: `unfinished-${index}` })),
          )
          await Promise.race([asked.promise, closed(control.socket, until)])
          add(tally, 'messages')
          await send(control.socket, textHead(UNFINISHED_BYTES))
          await send(control.socket, '{"type":"response","id":1,"body":"')
          for (
            let sent = 0;
            sent < UNFINISHED_BYTES - 2 * PIECE.length && !until.aborted;
            sent += PIECE.length
          ) {
            if (!(await send(control.socket, PIECE, until))) break
            add(tally, 'MB')
          }
          await closed(control.socket, until)
          control.socket.destroy()
          visitor?.destroy()
        },
        200,
      ),
  },
  {
    name: 'json-nested',
    does: '4 clients whose control messages are nested 30,000 deep, or 4,000 wide, of a type that is not known',
    attack: (target, tally, until) => {
      const message = (value: string): Buffer =>
        controlFrame(JSON.parse(`{"type":"unknown","value":${value}}`))
      const batches = [
        Buffer.concat(Array(20).fill(message(nested))),
        Buffer.concat(Array(20).fill(message(wide))),
      ]
      return loops(4, until, async index => {
        const control = await Control.open(target, { wire: 'streams', token: target.token })
        add(tally, 'connections')
        await send(
          control.socket,
          controlFrame({ type: 'register', ref: 1, kind: 'http', name: `nested-${index}` }),
        )
        while (!until.aborted && control.isOpen && (await send(control.socket, batches[index % 2]!, until))) {
          add(tally, 'messages', 20)
          await Bun.sleep(0)
        }
        control.socket.destroy()
      })
    },
  },
]
