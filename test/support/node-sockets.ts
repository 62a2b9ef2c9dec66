// Runs the socket suite in this process and prints one line per case: built and started with Node by a test. Its argument is a
// pattern of the cases to leave out.

import { associate } from '../../src/sockets/associate.ts'
import { dial } from '../../src/sockets/dial.ts'
import { datagramCases } from '../suites/datagrams.ts'
import { dialCases } from '../suites/socket.ts'
import { viaCases } from '../suites/via.ts'
import { within } from './within.ts'

const leftOut = new RegExp(process.argv[2] ?? '^$')
for (const { name, run } of [...dialCases(dial), ...viaCases(dial), ...datagramCases(associate)]) {
  if (leftOut.test(name)) continue
  const outcome = await within(run(), name).then(
    () => 'passed',
    (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
  )
  console.log(JSON.stringify({ name, outcome }))
}
// The far sides and proxies live here too, and Node keeps a TLS one of them: clients that end are tested elsewhere.
process.exit()
