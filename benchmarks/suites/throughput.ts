// Requests through a live server and client against the same requests without them: `bun benchmarks/index.ts throughput`.

import { concurrent, exchange, startLive, titled, WIRES } from '../live.ts'
import { bench, group, runSuite } from '../measure/mitata.ts'

const live = await startLive()
const { direct, streams, json } = live
const SIZES = [
  ['20 B', '/20'],
  ['1 KB', '/1k'],
  ['64 KB', '/64k'],
  ['512 KB', '/512k'],
  ['1 MB', '/1m'],
] as const
const post = (size: number): RequestInit => ({ method: 'POST', body: new Uint8Array(size).fill(97) })
const POSTS = [
  ['1 KB POST', post(1024)],
  ['64 KB POST', post(65_536)],
] as const

group('GET Response — Direct', () => {
  for (const [size, path] of SIZES) bench(size, () => exchange(direct, path))
})

group('GET Response — Through Tunnel', () => {
  for (const wire of WIRES)
    for (const [size, path] of SIZES) bench(titled(size, wire), () => exchange(live[wire], path))
})

group('POST Echo — Direct', () => {
  for (const [name, init] of POSTS) bench(name, () => exchange(direct, '/echo', init))
})

group('POST Echo — Through Tunnel', () => {
  for (const wire of WIRES)
    for (const [name, init] of POSTS) bench(titled(name, wire), () => exchange(live[wire], '/echo', init))
})

for (const [title, path, init] of [
  ['Tiny (20 B)', '/20', undefined],
  ['1 KB', '/1k', undefined],
  ['64 KB', '/64k', undefined],
  ['512 KB', '/512k', undefined],
  ['1 MB', '/1m', undefined],
  ['POST 1 KB', '/echo', post(1024)],
] as const) {
  group(`Tunnel Overhead — ${title}`, () => {
    bench('Direct', () => exchange(direct, path, init))
    bench('Tunnel', () => exchange(streams, path, init))
    bench('Tunnel · JSON wire', () => exchange(json, path, init))
  })
}

group('Concurrent GET', () => concurrent(live, '/20'))

group('Mixed Methods', () => {
  const body = '{"name":"bench"}'
  for (const wire of WIRES) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const init = method === 'GET' || method === 'DELETE' ? { method } : { method, body }
      bench(titled(method, wire), () => exchange(live[wire], '/echo', init))
    }
  }
})

await runSuite('throughput', 'Throughput')
