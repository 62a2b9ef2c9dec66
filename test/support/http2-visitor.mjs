// Runs under Node: a visitor of HTTP/2 by node:http2, and one by undici. `http2-visitor.mjs PORT HOST`. Prints JSON.

import { once } from 'node:events'
import { connect } from 'node:http2'
import { Agent, request } from 'undici'

const [, , port, host] = process.argv
const url = `https://127.0.0.1:${port}`
const session = connect(url, { rejectUnauthorized: false, settings: { initialWindowSize: 20_000 } })

async function ask(headers, body) {
  const stream = session.request({ ':authority': host, ...headers }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  const [answer] = await once(stream, 'response')
  let bytes = 0
  let first = ''
  for await (const chunk of stream) {
    first ||= chunk.toString('latin1').slice(0, 20)
    bytes += chunk.length
  }
  return { status: answer[':status'], bytes, first }
}

const hello = await ask({ ':path': '/' })
const all = await Promise.all(Array.from({ length: 50 }, () => ask({ ':path': '/big' })))
const upload = await ask({ ':path': '/echo', ':method': 'POST' }, Buffer.alloc(3_000_000, 'x'))
await new Promise(resolve =>
  session.remoteSettings?.enableConnectProtocol === undefined
    ? session.once('remoteSettings', resolve)
    : resolve(),
)
const socket = session.request({
  ':method': 'CONNECT',
  ':protocol': 'websocket',
  ':scheme': 'https',
  ':path': '/ws',
  ':authority': host,
  'sec-websocket-version': '13',
})
const [opened] = await once(socket, 'response')
// A text frame "hi", masked with zeros.
socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
const [echo] = await once(socket, 'data')
socket.close(8)
const cancelled = session.request({ ':authority': host, ':path': '/big' })
cancelled.close(8)
await once(cancelled, 'close')
session.close()

const dispatcher = new Agent({ allowH2: true, connect: { rejectUnauthorized: false } })
const byUndici = await Promise.all(
  Array.from({ length: 20 }, async (_, index) => {
    const { statusCode, body } = await request(`${url}/echo`, {
      dispatcher,
      method: 'POST',
      headers: { host },
      body: `number ${index}`,
    })
    return `${statusCode} ${await body.text()}`
  }),
)
await dispatcher.close()

console.log(
  JSON.stringify({
    hello,
    big: all.every(({ status, bytes }) => status === 200 && bytes === 1_048_576),
    upload,
    webSocket: [opened[':status'], echo.toString('hex')],
    byUndici,
  }),
)
