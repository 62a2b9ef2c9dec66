// The ordinary app on Node: fixed files, an answer in pieces, server-sent events, on node:http. `app.mjs h2c`: HTTP/2 without TLS.

import { createServer as createHttp } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'

const SIZES = { 20: 20, '1k': 1024, '10k': 10_240, '64k': 65_536, '100k': 102_400, '1m': 1_048_576 }
const PIECES = 8
const EVENTS = Array.from({ length: 20 }, (_, i) => `id: ${i}\ndata: {"n":${i},"at":"2026-11-23"}\n\n`)

function fileBytes(size) {
  const words = new Uint32Array(size >> 2)
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2_654_435_761)
  return Buffer.from(words.buffer, 0, size)
}
const files = new Map(Object.entries(SIZES).map(([name, size]) => [`/${name}`, fileBytes(size)]))
const chunked = files.get('/1k')

const isHttp2 = process.argv[2] === 'h2c'
const server = (isHttp2 ? createHttp2 : createHttp)((request, response) => {
  const file = files.get(request.url)
  response.setHeader('X-Answer', `${request.method} ${request.url}`)
  if (request.url === '/two') {
    // The head at once, the body behind it: two segments, as with a stream that is piped.
    response.writeHead(200, { 'content-length': 20 })
    response.flushHeaders()
    response.end(files.get('/20'))
  } else if (request.url === '/chunked') {
    const size = chunked.length / PIECES
    for (let i = 0; i < PIECES; i++) response.write(chunked.subarray(i * size, (i + 1) * size))
    response.end()
  } else if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let at = 0
    const next = () => {
      response.write(EVENTS[at++])
      if (at < EVENTS.length) setImmediate(next)
      else response.end()
    }
    next()
  } else if (file) response.end(file)
  else response.writeHead(404).end()
})
if (!isHttp2) Object.assign(server, { keepAliveTimeout: 600_000, requestTimeout: 0 })
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))
