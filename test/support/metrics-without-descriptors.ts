// A program: asks a server of its own for metrics, on a connection that was there before the process had no free descriptor any
// more. Prints the status of the answer.

import { closeSync, openSync } from 'node:fs'
import { ADMIN_TOKEN, adminOptions } from './admin.ts'
import { rawDial } from './raw.ts'
import { startServer } from './tunnel.ts'

await using server = await startServer({ admin: adminOptions() })
const connection = await rawDial(Number(new URL(server.adminUrl ?? '').port))
const ask = () =>
  connection.send(`GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`)
await ask()
await connection.until('process_open_fds ')
const taken: number[] = []
try {
  for (;;) taken.push(openSync('/dev/null', 'r'))
} catch {
  // That was the last one.
}
await ask()
const status = await connection.until('HTTP/1.1 ').then(() => connection.exactly(3))
if (status === '200') await connection.until('process_cpu_seconds_total ')
// Writing needs one, too.
for (const descriptor of taken) closeSync(descriptor)
process.stdout.write(`${status}\n`)
process.exit()
