// App and visitors of the attack `resets`, under Node: `resets-peer.mjs app` and `resets-peer.mjs visitors PORT TCP_PORT`.
//
// Every connection begins with what will happen to it: who ends it, how, and after how many bytes. So each side knows what
// the other did, and counts what the runtime reported. Prints `counts JSON` when it is ended.

import { connect, createServer } from 'node:net'

const [role, port, tcpPort] = process.argv.slice(2)
const counts = { resets: 0, ends: 0, resetsToldAsEnds: 0, endsToldAsResets: 0, toldInWords: 0 }
/** What the side writes that is to be reset meanwhile: more than the buffers on the way take at once. */
const MOST_BYTES = 600_000
const VISITORS = 24
const PIECE = Buffer.alloc(16_384, 'p')
let isStopping = false

// What ends from now on ends because the attack is over.
process.on('SIGUSR1', () => {
  isStopping = true
})
process.on('SIGTERM', () => {
  isStopping = true
  console.log(`counts ${JSON.stringify(counts)}`)
  process.exit(0)
})

/** Counts how the far side's end came out here. `was`: what it did. */
function count(was, told) {
  if (isStopping) return
  if (was === 'reset') {
    counts.resets++
    if (told === 'end') counts.resetsToldAsEnds++
  } else {
    counts.ends++
    if (told === 'reset') counts.endsToldAsResets++
  }
}

/** Writes so many bytes, as fast as they are taken; then does `then`. */
function write(socket, bytes, then) {
  let left = bytes
  const go = () => {
    while (left > 0) {
      if (socket.destroyed || !socket.writable) return
      const piece = PIECE.subarray(0, Math.min(left, PIECE.length))
      left -= piece.length
      if (!socket.write(piece)) {
        socket.once('drain', go)
        return
      }
    }
    then()
  }
  go()
}

function finish(socket, how) {
  if (how === 'reset') socket.resetAndDestroy()
  else socket.end()
}

/**
 * libuv reports some resets as ends: where a read was short, and where a write got the error. The kernel knows no far side
 * any more then. Only for connections that this side has not ended.
 */
function isGone(socket) {
  return socket._handle?.getpeername?.({}) !== 0
}

/** Calls `heard` once, with how the far side ended: `end` or `reset`. */
function listen(socket, heard) {
  let told
  const say = how => {
    if (told !== undefined) return
    told = how
    heard(how)
  }
  socket.on('end', () => say(isGone(socket) ? 'reset' : 'end'))
  socket.on('error', () => say('reset'))
  socket.on('close', () => say('reset'))
  socket.on('data', () => {})
}

// The plan is one line: `PLAN who how bytes`. Of HTTP it is the target.
const planOf = text => /PLAN-(app|visitor)-(end|reset)-(\d+)-(\d+)/.exec(text)

if (role === 'app') {
  const serve = isHttp =>
    createServer({ allowHalfOpen: true }, socket => {
      socket.once('data', first => {
        const plan = planOf(first.toString('latin1'))
        if (plan === null) return socket.destroy()
        const [, who, how, bytes, delayMs] = plan
        if (isHttp) socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
        if (who === 'app') {
          listen(socket, () => {})
          write(socket, Number(bytes), () => setTimeout(() => finish(socket, how), Number(delayMs)))
        } else {
          // The visitor ends it, and this side writes all the while. An upload is a body that is never complete, so the
          // server resets it however the visitor left: of HTTP only resets are counted.
          listen(socket, told => {
            if (!isHttp || how === 'reset') count(how, told)
            socket.destroy()
          })
          write(socket, MOST_BYTES, () => {})
        }
      })
      socket.on('error', () => {})
    })
  const [http, tcp] = [serve(true), serve(false)]
  http.listen(0, '127.0.0.1', () =>
    tcp.listen(0, '127.0.0.1', () => console.log(`ready ${http.address().port} ${tcp.address().port}`)),
  )
} else {
  console.log('ready')
  for (let index = 0; index < VISITORS; index++) visit(index)
}

function visit(index) {
  if (isStopping) return
  const isHttp = index % 2 === 0
  const who = Math.random() < 0.5 ? 'app' : 'visitor'
  const how = Math.random() < 0.9 ? 'reset' : 'end'
  const bytes = Math.floor(Math.random() ** 4 * 500_000)
  const delayMs = Math.random() < 0.5 ? 0 : Math.floor(Math.random() * 5)
  const plan = `PLAN-${who}-${how}-${bytes}-${delayMs}`
  const isUploading = Math.random() < 0.5
  const socket = connect({
    port: Number(isHttp ? port : tcpPort),
    host: '127.0.0.1',
    localAddress: '127.0.0.40',
    allowHalfOpen: true,
  })
  const again = () => setImmediate(visit, index)
  socket.once('close', again)
  socket.once('connect', () => {
    if (isHttp) {
      const length = isUploading || who === 'visitor' ? 'Content-Length: 1000000000\r\n' : ''
      socket.write(`${length ? 'POST' : 'GET'} /${plan} HTTP/1.1\r\nHost: resets.localhost\r\n${length}\r\n`)
    } else socket.write(`${plan}\n`)
    if (who === 'app') {
      let first = ''
      socket.once('data', bytes => {
        first = bytes.toString('latin1', 0, 12)
      })
      listen(socket, told => {
        // 502 instead of the answer is the reset in words: the head of the answer was lost with it.
        if (isHttp && first.startsWith('HTTP/1.1 502')) counts.toldInWords++
        else count(how, told)
        socket.destroy()
      })
      if (isUploading) write(socket, MOST_BYTES, () => {})
    } else {
      listen(socket, () => {})
      const leave = () => {
        finish(socket, how)
        // What the app writes into a connection that was ended in good order has no reader. Not before: on a busy machine this
        // would end one that is to be reset.
        setTimeout(() => socket.destroy(), 100)
      }
      write(socket, bytes, () => setTimeout(leave, delayMs))
    }
  })
  socket.on('error', () => {})
}
