// Runs under Node: reads answers through the client of node:http (llhttp) and says what it made of them. One case per
// line as JSON, `{ method, bytes }` with the bytes in base64; JSON out. Connections are in memory.

import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'
import { Duplex } from 'node:stream'

/** `bytes` is all that ever comes: then the origin ends its connection. */
function read(method, bytes) {
  const reading = { interims: [], answer: undefined, refusal: '' }
  return new Promise(resolve => {
    const socket = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        done()
      },
    })
    socket.setTimeout = socket.setNoDelay = socket.setKeepAlive = socket.ref = socket.unref = () => socket
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    agent.createConnection = () => socket
    const asking = request({ method, agent, host: 'a', path: '/' })
    const take = (response, isSwitched) => {
      const { statusCode: status, statusMessage: reason, rawHeaders: headers } = response
      const answer = { status, reason, headers, body: '', isWhole: isSwitched, keepAlive: false }
      reading.answer = answer
      return answer
    }
    asking.on('information', ({ statusCode }) => reading.interims.push(statusCode))
    asking.on('upgrade', (response, _socket, head) => {
      take(response, true).body = head.toString('latin1')
      socket.destroy()
    })
    asking.on('response', response => {
      const answer = take(response, false)
      const pieces = []
      response.on('data', piece => pieces.push(piece))
      response.on('end', () => {
        answer.isWhole = response.complete
      })
      response.on('error', () => {}) // a body cut short: `isWhole` says so
      response.on('close', () => {
        answer.body = Buffer.concat(pieces).toString('latin1')
        answer.keepAlive = asking.shouldKeepAlive
      })
    })
    asking.on('error', error => {
      // Behind a whole answer it is about what follows, which is not the answer's.
      reading.refusal ||= error.code ?? error.message
    })
    asking.on('close', () => setImmediate(() => socket.destroy()))
    socket.on('close', () => setImmediate(() => resolve(reading)))
    asking.end()
    setImmediate(() => {
      socket.push(bytes)
      socket.push(null)
      setImmediate(() => setImmediate(() => setImmediate(() => socket.destroy())))
    })
  })
}

for await (const line of createInterface({ input: process.stdin })) {
  const { method, bytes } = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(await read(method, Buffer.from(bytes, 'base64')))}\n`)
}
