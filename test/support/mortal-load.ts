// Bulk, lanes and raw conversations through a tunnel, in a process whose threads die again and again; every byte is checked.
// Prints what came of it.

import { runInThreads, spliceCounts } from '../../src/accelerator/threads.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { peerClient, peerServer } from './peer.ts'
import { Sink, Source } from './relay.ts'

const [milliseconds = '3000'] = process.argv.slice(2)
runInThreads(new URL('./mortal-thread.ts', import.meta.url))

const codes = new Map<string, number>()
const count = (name: string) => codes.set(name, (codes.get(name) ?? 0) + 1)
const codeOf = (error: Error) => ('code' in error ? String(error.code) : error.message)
const server = new TunnelServer({ port: 0, host: '127.0.0.1', tcpPorts: '20000-29999' })
server.on('error', error => count(`server ${codeOf(error)}`))
await server.start()
const app = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: request => new Response(new URL(request.url).pathname),
})
const client = new TunnelClient({ server: server.url, port: app.port, host: '127.0.0.1', subdomain: 'app' })
client.on('error', error => count(`client ${codeOf(error)}`))
await client.connect()
const echo = Bun.listen({
  port: 0,
  hostname: '127.0.0.1',
  socket: { data: (socket, bytes) => void socket.write(bytes) },
})
const bulk = await peerServer({})
const echoTunnel = await client.tcp({ port: echo.port, host: '127.0.0.1' })
const bulkTunnel = await client.tcp({ port: bulk.port, host: '127.0.0.1' })

const until = performance.now() + Number(milliseconds)
const wrong: string[] = []

/** Easy requests on one connection, until it breaks. */
async function easy(name: string): Promise<void> {
  for (let connection = 0; performance.now() < until; connection++) {
    const visitor = await peerClient(server.port, false)
    const answers = readAnswers(visitor)
    for (let request = 0; performance.now() < until; request++) {
      const path = `/${name}-${connection}-${request}`
      visitor.write(`GET ${path} HTTP/1.1\r\nHost: app.localhost\r\n\r\n`)
      const answer = await answers()
      if (answer === undefined) {
        count('connections broken')
        break
      }
      count('answers')
      if (answer.status === 200 && answer.body !== path) wrong.push(`${path}: ${answer.body}`)
      if (answer.status !== 200) count(`status ${answer.status}`)
    }
    visitor.destroy()
  }
}

function readAnswers(visitor: Awaited<ReturnType<typeof peerClient>>) {
  let text = ''
  let isOver = false
  let wake = () => {}
  visitor.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
    wake()
  })
  for (const event of ['end', 'error', 'close'])
    visitor.on(event, () => {
      isOver = true
      wake()
    })
  return async (): Promise<{ status: number; body: string } | undefined> => {
    for (;;) {
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
      if (end !== -1 && text.length >= end + 4 + length) {
        const answer = { status: Number(text.slice(9, 12)), body: text.slice(end + 4, end + 4 + length) }
        text = text.slice(end + 4 + length)
        return answer
      }
      if (isOver) return undefined
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
  }
}

/** Small pieces there and back. */
async function talk(name: string): Promise<void> {
  while (performance.now() < until) {
    const visitor = await peerClient(echoTunnel.port ?? 0, false)
    let said = ''
    let heard = ''
    const over = new Promise<void>(resolve => {
      visitor.on('data', (bytes: Buffer) => {
        heard += bytes.toString('latin1')
        if (!said.startsWith(heard)) wrong.push(`${name}: ${heard.slice(-50)}`)
        count('pieces')
        if (performance.now() > until || heard.length > 200_000) return resolve()
        if (heard.length === said.length) say()
      })
      for (const event of ['end', 'error', 'close']) visitor.on(event, () => resolve())
    })
    const say = () => {
      const piece = `${name} ${said.length};`
      said += piece
      visitor.write(piece)
    }
    say()
    await over
    visitor.destroy()
  }
}

/** One download after the other. */
async function download(): Promise<void> {
  while (performance.now() < until) {
    const visitor = await peerClient(bulkTunnel.port ?? 0, false)
    const atOrigin = await bulk.accepted()
    const sink = new Sink(visitor)
    new Source(atOrigin, 60_000_000)
    const outcome = await sink.over()
    if (outcome.startsWith('wrong')) wrong.push(outcome)
    if (outcome === 'end' && sink.receivedBytes !== 60_000_000)
      wrong.push(`ended after ${sink.receivedBytes}`)
    count(outcome === 'end' ? 'downloads' : 'downloads broken')
    visitor.destroy()
    atOrigin.destroy()
  }
}

await Promise.all([easy('a'), easy('b'), easy('c'), talk('d'), talk('e'), download()])
// They come back, and stay.
runInThreads(new URL('../../src/accelerator/thread.ts', import.meta.url))
const { begun } = spliceCounts()
const openDescriptors = (
  await Array.fromAsync(new Bun.Glob('*').scan({ cwd: '/proc/self/fd', onlyFiles: false }))
).length
console.log(JSON.stringify({ wrong, begun, openDescriptors, ...Object.fromEntries(codes) }))
process.exit()
