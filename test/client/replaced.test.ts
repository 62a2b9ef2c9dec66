// A client whose server is replaced by another program with the same sockets.

import * as ffi from 'bun:ffi'
import { expect, test } from 'bun:test'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { openLibc } from '../../src/libc.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'

const { defer } = closedAfterEach()

const libc = openLibc(ffi, { dup: { args: ['i32'], returns: 'i32' } })

async function started(inherited: readonly number[] = []): Promise<TunnelServer> {
  const server = new TunnelServer({
    port: 0,
    host: '127.0.0.1',
    inherited,
    limits: { drainTimeoutMs: 60_000 },
  })
  await server.start()
  defer(() => server.stop())
  return server
}

/** Another server on the sockets of this one, which leaves when it is done. */
async function replaced(server: TunnelServer): Promise<TunnelServer> {
  const next = await started(server.descriptors.map(descriptor => libc.dup(descriptor)))
  void server.handOver()
  return next
}

test('what is under way goes on at each server before; of more than four the oldest is cut', async () => {
  const bodies: ReadableStreamDefaultController<Uint8Array>[] = []
  let server = await started()
  const { port } = server
  const client = new TunnelClient({
    server: server.url,
    subdomain: 'shop',
    fetch: () => new Response(new ReadableStream({ start: body => void bodies.push(body) })),
  })
  const ends: { readonly id: number; readonly error?: string | undefined }[] = []
  const ids: number[] = []
  let connected = 0
  client.on('request', ({ id }) => ids.push(id))
  client.on('response', ({ id, error }) => ends.push({ id, error }))
  client.on('connected', () => connected++)
  client.on('error', () => {})
  defer(() => client.disconnect())
  await client.connect()
  const downloads: Promise<string>[] = []
  for (let generation = 1; generation <= 6; generation++) {
    const answer = fetch(`http://127.0.0.1:${port}/${generation}`, { headers: { host: 'shop.localhost' } })
    await eventually(() => bodies.length === generation && ids.length === generation, 'the request')
    bodies.at(-1)?.enqueue(Buffer.from('begun '))
    downloads.push(answer.then(async one => one.text()).catch(() => 'cut'))
    await answer
    if (generation === 6) break
    server = await replaced(server)
    await eventually(() => connected === generation + 1, 'the client to come back')
  }
  expect(new Set(ids).size).toBe(6)
  // It belongs to the oldest of five.
  expect(await downloads[0]).toBe('cut')
  await eventually(() => ends.length === 1, 'the end of the oldest')
  expect(ends).toEqual([{ id: ids[0]!, error: 'CARRIER_LOST' }])
  for (const body of bodies.slice(1)) {
    body.enqueue(Buffer.from('ended'))
    body.close()
  }
  expect(await Promise.all(downloads.slice(1))).toEqual(Array.from({ length: 5 }, () => 'begun ended'))
  await eventually(() => ends.length === 6, 'the reports')
  expect(ends.slice(1).map(({ id, error }) => [id, error])).toEqual(
    expect.arrayContaining(ids.slice(1).map(id => [id, undefined])),
  )
})

test('disconnect ends the connections to servers before, too', async () => {
  const first = await started()
  const client = new TunnelClient({
    server: first.url,
    subdomain: 'shop',
    fetch: () => new Response(new ReadableStream({ start: body => body.enqueue(Buffer.from('begun ')) })),
  })
  let connected = 0
  client.on('connected', () => connected++)
  await client.connect()
  const answer = await fetch(`http://127.0.0.1:${first.port}/`, { headers: { host: 'shop.localhost' } })
  await replaced(first)
  await eventually(() => connected === 2, 'the client to come back')
  await client.disconnect()
  expect(await answer.text().catch(() => 'cut')).toBe('cut')
  await eventually(() => first.getStats().connections === 0, 'the first server to be without clients')
})

test('a server that is part of a program is not replaced by its API', async () => {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', admin: adminOptions() })
  defer(() => server.stop())
  await server.start()
  const { status, body } = await askAdmin(server, '/upgrade', { method: 'POST' })
  expect([status, body.error.code]).toEqual([400, 'ADMIN_INVALID'])
})
