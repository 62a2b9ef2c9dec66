// Our library, broken in the way that BROKEN names: the benchmarks load it in place of the real one, and must notice.
//
// A proxy between the client and the app does the harm, so every kind of tunnel has it. `BROKEN_EVERY`: one of so many
// pieces; default 100.

import * as real from '../../src/index.ts'

const way = process.env.BROKEN
const every = Number(process.env.BROKEN_EVERY ?? 100)
const SLOW_MS = 20

/** Both sides of a connection through the proxy. */
interface Pair {
  other?: Bun.Socket<Pair>
  isApp: boolean
  waiting: Buffer[]
}

let [down, up] = [0, 0]

/** What is passed on in place of a piece; `undefined`: nothing. */
function harmed(piece: Buffer, isApp: boolean, from: Bun.Socket<Pair>): Buffer | undefined {
  // The first ones are those that see whether the tunnel works.
  const isDue = (count: number): boolean => count > 1 && count % every === 0
  if (isApp && way === 'wrong bytes down' && isDue(++down)) piece[piece.length - 1]! ^= 1
  if (isApp && way === 'stalls' && isDue(++down)) return undefined
  // Heads stay as they are: the app would refuse them.
  if (!isApp && way === 'wrong bytes up') {
    const head = piece.indexOf('\r\n\r\n')
    const body = /^[A-Z]+ \//.test(piece.toString('latin1', 0, 8)) ? head + 4 : 0
    if (piece.length > body && isDue(++up)) piece[piece.length - 1]! ^= 1
  }
  if (!isApp && way === '502' && isDue(++up)) {
    from.write('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
    return undefined
  }
  return piece
}

function passOn(socket: Bun.Socket<Pair>, piece: Buffer): void {
  const { waiting } = socket.data
  waiting.push(piece)
  if (waiting.length === 1) flush(socket)
}

function flush(socket: Bun.Socket<Pair>): void {
  const { waiting } = socket.data
  while (waiting[0]) {
    const written = Math.max(0, socket.write(waiting[0]))
    if (written === waiting[0].length) waiting.shift()
    else {
      waiting[0] = waiting[0].subarray(written)
      return
    }
  }
}

const handler: Bun.SocketHandler<Pair> = {
  data(socket, bytes) {
    const { other, isApp } = socket.data
    const piece = harmed(Buffer.from(bytes), isApp, socket)
    if (piece === undefined || other === undefined) return
    if (way === 'slow') setTimeout(() => passOn(other, piece), SLOW_MS)
    else passOn(other, piece)
  },
  drain: flush,
  close: ({ data }) => void data.other?.end(),
  error: ({ data }) => void data.other?.end(),
}

const proxies = new Map<number, number>()

/** Port of a proxy in front of the app's. */
function inFrontOf(port: number): number {
  const known = proxies.get(port)
  if (known !== undefined) return known
  const listener = Bun.listen<Pair>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      ...handler,
      open(near) {
        near.data = { isApp: false, waiting: [] }
        near.pause()
        const data: Pair = { isApp: true, waiting: [], other: near }
        void Bun.connect<Pair>({ hostname: '127.0.0.1', port, data, socket: handler }).then(far => {
          near.data.other = far
          near.resume()
        })
      },
    },
  })
  proxies.set(port, listener.port)
  return listener.port
}

type Options = real.TunnelClientOptions

const isWhole = way === 'exits' || way === 'missing'
const throughProxy = <T extends { port?: number | undefined }>(app: T): T =>
  app.port === undefined || isWhole ? app : { ...app, port: inFrontOf(app.port) }

export class TunnelClient extends real.TunnelClient {
  constructor(options: Options) {
    super(throughProxy(options))
  }

  override async connect(): Promise<void> {
    if (way === 'exits') process.exit(3)
    if (way === 'missing') await new Promise(() => setInterval(() => {}, 60_000))
    await super.connect()
  }

  override async http(
    ...[options]: Parameters<real.TunnelClient['http']>
  ): ReturnType<real.TunnelClient['http']> {
    return super.http(throughProxy(options))
  }

  override async tcp(
    ...[options]: Parameters<real.TunnelClient['tcp']>
  ): ReturnType<real.TunnelClient['tcp']> {
    if (way === 'exits') process.exit(3)
    if (way === 'missing') await new Promise(() => setInterval(() => {}, 60_000))
    return super.tcp(throughProxy(options))
  }
}

export class TunnelServer extends real.TunnelServer {
  override async start(): Promise<void> {
    if (way === 'server exits') process.exit(3)
    await super.start()
  }
}
