// An origin that gives back what it gets, for round trips. A request with `Upgrade` is switched first, so that a tunnel
// that reads HTTP carries the same bytes.

import type { Socket } from 'bun'

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

interface Echo {
  /** Bytes of this connection are echoed; before that a request head is awaited or ruled out. */
  echoing: boolean
  head: string
}

const listener = Bun.listen<Echo>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { echoing: false, head: '' }
      socket.setNoDelay(true)
    },
    data(socket, chunk) {
      if (socket.data.echoing) socket.write(chunk)
      else first(socket, chunk)
    },
    error() {},
  },
})
console.log(`listening ${listener.port}`)

function first(socket: Socket<Echo>, chunk: Buffer): void {
  const { data } = socket
  data.head += chunk.toString('latin1')
  if (!data.head.startsWith('GET ')) {
    data.echoing = true
    socket.write(data.head)
    return
  }
  if (!data.head.includes('\r\n\r\n')) return
  const upgrades = /\r\nupgrade:/i.test(data.head)
  data.head = ''
  data.echoing = upgrades
  // The probe that waits for a tunnel asks for a page, not for a switch.
  socket.write(upgrades ? SWITCH : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK')
}
