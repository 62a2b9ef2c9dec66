// Runs the socket suite in this process and prints one line per case: built and started with Node by a test.

import { dial } from '../../src/sockets/dial.ts'
import { dialCases } from '../suites/socket.ts'

for (const { name, run } of dialCases(dial)) {
  const outcome = await run().then(
    () => 'passed',
    (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
  )
  console.log(JSON.stringify({ name, outcome }))
}
