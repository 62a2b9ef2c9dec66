// Opens carriers in this process and echoes what they bring: built and started with Node by a test.

import { copyOf } from '../../src/bytes.ts'
import { directCarriers } from '../../src/client/carriers/direct.ts'
import { wsCarriers } from '../../src/client/carriers/ws.ts'
import { dial } from '../../src/sockets/dial.ts'

const [kind, port] = process.argv.slice(2)
const open = kind === 'ws' ? wsCarriers() : directCarriers(dial)

await open(
  {
    address: { host: '127.0.0.1', port: Number(port) },
    host: `127.0.0.1:${port}`,
    path: '',
    query: '',
    protocols: [],
    timeoutMs: 5_000,
    signal: new AbortController().signal,
  },
  carrier => {
    const waiting: Uint8Array[] = []
    let isFull = false
    const flush = () => {
      while (!isFull && waiting.length > 0) {
        const bytes = waiting.shift()!
        const batch = new Uint8Array(carrier.headroom + bytes.length)
        batch.set(bytes, carrier.headroom)
        isFull = !carrier.send(batch, carrier.headroom, batch.length)
        if (!isFull) batch.fill(0xee)
      }
    }
    return {
      received(bytes, start, end) {
        waiting.push(copyOf(bytes, start, end))
        flush()
      },
      drained() {
        isFull = false
        flush()
      },
      closed: error => console.log(error === undefined ? 'closed' : String(error)),
    }
  },
)
