// Runs under Node: reads requests through node:http (llhttp) and says what it made of them. One case per line, base64
// in, JSON out. Connections are in memory, so that a hundred thousand of them need no ports.

import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { Duplex } from 'node:stream'

const server = createServer({
  keepAliveTimeout: 0,
  headersTimeout: 0,
  requestTimeout: 0,
  connectionsCheckingInterval: 2 ** 30,
})
const serve = (request, response) => {
  const { messages } = request.socket.reading
  const pieces = []
  request.on('data', piece => pieces.push(piece))
  request.on('end', () => {
    messages.push({
      method: request.method,
      target: request.url,
      body: Buffer.concat(pieces).toString('latin1'),
    })
    response.end()
  })
}
server.on('request', serve)
server.on('checkContinue', serve)
server.on('checkExpectation', serve)
server.on('upgrade', (_request, socket) => {
  socket.reading.refusal = 'UPGRADE'
  socket.destroy()
})
server.on('connect', (_request, socket) => {
  socket.reading.refusal = 'CONNECT'
  socket.destroy()
})
server.on('clientError', (error, socket) => {
  // The socket stays until its time is over: messages in front of the bad one are still being handed out.
  socket.reading.refusal ||= error.code ?? error.message
})

function read(bytes) {
  const reading = { messages: [], refusal: '' }
  return new Promise(resolve => {
    const socket = new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        // What node:http refuses by itself, without an error: a missing Host.
        if (/^HTTP\/1.1 4/.test(chunk.toString('latin1'))) reading.refusal ||= 'ANSWERED_4XX'
        done()
      },
    })
    socket.reading = reading
    socket.setTimeout = socket.setNoDelay = socket.setKeepAlive = () => socket
    socket.on('close', () => resolve(reading))
    server.emit('connection', socket)
    socket.push(bytes)
    socket.push(null)
    // The end of a Duplex does not close it while the server still waits for more.
    setImmediate(() => setImmediate(() => setImmediate(() => socket.destroy())))
  })
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await read(Buffer.from(line, 'base64')))}\n`)
// Not process.exit: it would cut off lines that the pipe has not taken yet.
server.close()
