// gRPC through a whole tunnel: clients and servers of the two implementations that most programs use.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { startNodeServer } from '../support/grpc.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, run, startProgram } from '../support/programs.ts'

const SCRIPT = join(import.meta.dir, '../support/node-grpc.mjs')

testWith(
  ['node', 'openssl'],
  'grpc-js: all kinds of calls, trailers, errors, deadlines, cancellation, many at once',
  async () => {
    using app = await startNodeServer()
    const tls = await makeCertificate(['app.localhost'])
    await using site = await startHttp2Site(app.port, { client: { protocol: 'h2c' }, server: { tls } })
    await using dir = await folder('grpc')
    await Bun.write(`${dir.path}/root.pem`, tls.cert)
    const name = 'app.localhost'
    const { out, code, err } = await run([
      'node',
      SCRIPT,
      'client',
      `127.0.0.1:${site.port}`,
      `${dir.path}/root.pem`,
      name,
    ])
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toEqual({
      one: { answer: 'one 200000', trailer: 'yes' },
      many: 50,
      gather: 'gathered 300000',
      both: 'both 0,both 1,both 2,both 3,both 4',
      fail: 'FAILED_PRECONDITION no, thanks: 100 % sure',
      slow: 'DEADLINE_EXCEEDED',
      cancelled: '1',
      parallel: 150,
    })
  },
)

/** Those that need neither compression nor accounts. */
const CASES = [
  'empty_unary',
  'large_unary',
  'client_streaming',
  'server_streaming',
  'ping_pong',
  'empty_stream',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'cancel_after_first_response',
  'status_code_and_message',
  'special_status_message',
  'custom_metadata',
  'unimplemented_method',
  'unimplemented_service',
]

testWith(
  ['grpc-interop-client', 'grpc-interop-server', 'openssl'],
  'grpc-go: its interoperability tests',
  async () => {
    const port = freePort()
    await using _app = await startProgram(['grpc-interop-server', `--port=${port}`], port)
    const tls = await makeCertificate(['app.localhost'])
    await using site = await startHttp2Site(port, { client: { protocol: 'h2c' }, server: { tls } })
    await using dir = await folder('grpc')
    await Bun.write(`${dir.path}/root.pem`, tls.cert)
    const outcomes = await Promise.all(
      CASES.map(async name => {
        const { code, err } = await run([
          'grpc-interop-client',
          '--server_host=127.0.0.1',
          `--server_port=${site.port}`,
          '--use_tls',
          '--use_test_ca',
          `--ca_file=${dir.path}/root.pem`,
          '--server_host_override=app.localhost',
          `--test_case=${name}`,
        ])
        return code === 0 ? name : `${name}: ${err}`
      }),
    )
    expect(outcomes).toEqual(CASES)
  },
)
