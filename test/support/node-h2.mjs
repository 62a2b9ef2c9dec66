// Runs under Node: a client of node:http2 (nghttp2) on a connection in memory. Reads JSON from stdin, `{ requests, answer }`: lists of
// fields, and in base64 all that the server ever sends. Writes JSON: what the client sent, in base64, and what it made of
// the answers.

import { connect } from 'node:http2'
import { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'

const { requests, answer } = JSON.parse(await text(process.stdin))
let sent = Buffer.alloc(0)
const socket = new Duplex({
  read() {},
  write(chunk, _encoding, done) {
    sent = Buffer.concat([sent, chunk])
    if (countEnds() === requests.length) setImmediate(() => socket.push(Buffer.from(answer, 'base64')))
    done()
  },
})

/** How many requests the client has sent whole: HEADERS and DATA with END_STREAM, behind the preface. */
function countEnds() {
  let ends = 0
  for (let at = 24; at + 9 <= sent.length; at += 9 + sent.readUIntBE(at, 3))
    if (sent[at + 3] <= 1 && sent[at + 4] & 1) ends++
  return ends
}

socket.setTimeout = socket.setNoDelay = socket.setKeepAlive = socket.ref = socket.unref = () => socket
const session = connect('http://a', { createConnection: () => socket })
const errors = []
session.on('error', error => errors.push(error.message))

const ends = requests.map(
  ({ fields, body, trailers }) =>
    new Promise(resolve => {
      const stream = session.request(Object.fromEntries(fields), {
        endStream: body === undefined,
        waitForTrailers: trailers !== undefined,
      })
      const reading = { interims: [], fields: [], body: '', trailers: [], error: '' }
      stream.on('headers', (_headers, _flags, raw) => reading.interims.push(raw))
      stream.on('response', (_headers, _flags, raw) => Object.assign(reading, { fields: raw }))
      stream.on('trailers', (_headers, _flags, raw) => Object.assign(reading, { trailers: raw }))
      stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(trailers)))
      stream.on('data', chunk => {
        reading.body += chunk.toString('latin1')
      })
      stream.on('error', error => {
        reading.error = error.message
      })
      stream.on('close', () => resolve({ ...reading, code: stream.rstCode }))
      if (body !== undefined) stream.end(Buffer.from(body, 'latin1'))
    }),
)
const answers = await Promise.all(ends)
session.destroy()
console.log(JSON.stringify({ sent: sent.toString('base64'), answers, errors }))
