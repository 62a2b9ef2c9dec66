// The server under attack: `server-process.ts SPEC`. Prints `ready PORT TLS_PORT`, and five times a second what it
// told its listeners: `told {"error CODE": COUNT, "refused CODE": COUNT}`.
//
// SIGUSR2 collects garbage and prints `collected`. SIGUSR1 ends one of its worker threads and prints `thread ended`, or
// `no thread`.

import type { Worker } from 'node:worker_threads'
import type { AttackedOptions } from './attack.ts'
import { knownLimits, libraryAt } from './source.ts'

const TELL_MS = 200
const threads = new Set<Worker>()
// Node's name for it, and Bun knows it too: every thread that any part of the program starts.
process.on('worker', thread => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})

// The runner wrote it.
const { source, options } = JSON.parse(process.argv[2] ?? '') as {
  readonly source: string
  readonly options: AttackedOptions
}
const { TunnelServer, guarding } = await libraryAt(source)
const server = new TunnelServer(
  { ...options, guarding: guarding(), limits: await knownLimits(source, options.limits) },
  // The fixed bounds; a tree in which they are limits takes no such argument.
  options.limits,
)
let told: Record<string, number> = {}
function count(what: string): void {
  told[what] = (told[what] ?? 0) + 1
}
server.on('error', error => count(`error ${(error as { code?: string }).code ?? error.message}`))
// An older tree has no such event, and never calls it.
server.on('refused', ({ code }) => count(`refused ${code}`))
setInterval(() => {
  if (Object.keys(told).length > 0) console.log(`told ${JSON.stringify(told)}`)
  told = {}
}, TELL_MS)
await server.start()
process.on('SIGUSR2', () => {
  Bun.gc(true)
  console.log('collected')
})
process.on('SIGUSR1', () => {
  const [thread] = threads
  if (thread === undefined) return console.log('no thread')
  void thread.terminate().then(() => console.log('thread ended'))
})
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
console.log(`ready ${server.port} ${server.tlsPort}`)
