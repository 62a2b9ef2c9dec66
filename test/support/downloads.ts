// A download through a whole command line, one process that is server and client: do its threads move the bytes?

import { expect } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { eventually } from './events.ts'

const BYTES = 300_000_000

/** `start` runs the command line with these arguments. */
export async function expectThreadsToMove(
  start: (args: readonly string[]) => Bun.Subprocess<'ignore', 'pipe', 'pipe'>,
): Promise<void> {
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(new Uint8Array(BYTES)),
  })
  const sharing = start([`127.0.0.1:${app.port}`, '--subdomain', 'app', '--local'])
  try {
    const reader = sharing.stdout.getReader()
    const decoder = new TextDecoder()
    let printed = ''
    let url: URL | undefined
    while (url === undefined) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`no URL: ${printed}${await sharing.stderr.text()}`)
      printed += decoder.decode(value, { stream: true })
      const [found] = /http:\/\/app\.localhost:\d+/.exec(printed) ?? []
      if (found !== undefined) url = new URL(found)
    }
    const answer = await fetch(`http://127.0.0.1:${url.port}/`, { headers: { host: url.host } })
    let bytes = 0
    for await (const piece of answer.body ?? []) bytes += piece.length
    expect(bytes).toBe(BYTES)
    // The runtime calls them so. Without the thread's program they would be gone again at once.
    await eventually(() => threadsOf(sharing.pid).includes('Worker'), 'a worker thread')
  } finally {
    sharing.kill('SIGINT')
    await sharing.exited
    await app.stop(true)
  }
}

function threadsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).map(one =>
    readFileSync(`/proc/${pid}/task/${one}/comm`, 'utf8').trim(),
  )
}
