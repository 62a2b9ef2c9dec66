// The public side of the JSON wire: which URL is the tunnel's, and that `probe` claims nothing that it has not seen.

import { expect, test } from 'bun:test'
import { parseServer } from '../../src/client/carriers/server-address.ts'
import { TunnelClient } from '../../src/index.ts'
import { publicUrls } from '../../src/parts/json-wire/client/public-urls.ts'
import { finish, start } from '../cli/bin.ts'
import { next } from '../support/events.ts'
import { NaiveJsonServer, type NaiveJsonServerOptions } from '../support/json-server.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const withoutPort = { url: (name: string) => `http://${name}.localhost` }

async function joined(options: NaiveJsonServerOptions, asked = { count: 0 }, address = '127.0.0.1') {
  const server = new NaiveJsonServer(options)
  const client = new TunnelClient({
    server: `ws://${address}:${server.port}`,
    subdomain: 'app',
    fetch: () => {
      asked.count++
      return new Response('app')
    },
  })
  await client.connect()
  return {
    server,
    client,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      server[Symbol.dispose]()
    },
  }
}

test('an existing server names a URL without its port: the tunnel has it, and a probe comes back without the app', async () => {
  const asked = { count: 0 }
  await using ends = await joined(withoutPort, asked)
  expect(ends.client.getTunnelUrl()).toBe(`http://app.localhost:${ends.server.port}`)
  expect(await ends.client.probe()).toBe(true)
  expect(asked.count).toBe(0)
})

test('a public side that leads nowhere is false, though the client is connected', async () => {
  await using ends = await joined({ ...withoutPort, isPublicSideDead: true })
  expect(ends.client.isConnected()).toBe(true)
  expect(await ends.client.probe()).toBe(false)
})

test('where the first guess is wrong, the URL that answers becomes the tunnel’s', async () => {
  // By an address that its names are not below, so what it says is believed first.
  await using ends = await joined({ url: () => 'http://app.localhost:1' }, undefined, '0.0.0.0')
  expect(ends.client.getTunnelUrl()).toBe('http://app.localhost:1')
  const registered = next(ends.client, 'registered')
  expect(await ends.client.probe()).toBe(true)
  const url = `http://app.localhost:${ends.server.port}`
  expect(await registered).toMatchObject({ url })
  expect(ends.client.getTunnelUrl()).toBe(url)
})

test('a stranger’s header of that name reaches the app', async () => {
  await using ends = await joined(withoutPort)
  const answer = await ends.server.ask({ method: 'HEAD', headers: { 'x-localtunnels-probe': 'guessed' } })
  expect(answer.status).toBe(200)
})

test('a server of ours is probed on the JSON wire, and its URL is believed', async () => {
  await using tunnel = await startTunnel({ fetch: () => new Response('app') }, { wire: 'json' })
  expect(await tunnel.client.probe()).toBe(true)
  expect(tunnel.client.getTunnelUrl()).toBe(`http://app.localhost:${tunnel.port}`)
})

test('a tunnel that is not an HTTP one cannot be probed: undefined, not true', async () => {
  await using server = await startServer({ tcpPorts: '41000-41999' })
  await using client = new TunnelClient({ server: server.url })
  await client.tcp({ port: 9 })
  expect(await client.probe()).toBeUndefined()
})

test('doctor says what came back, and fails when nothing did', async () => {
  using good = new NaiveJsonServer(withoutPort)
  const fine = await finish(['doctor', '--server', `http://127.0.0.1:${good.port}`])
  expect(fine.stdout).toMatch(/ok +public side +a request to http:\/\/doctor-\S+\.localhost:\d+ came back/)
  using dead = new NaiveJsonServer({ ...withoutPort, isPublicSideDead: true })
  const broken = await finish(['doctor', '--server', `http://127.0.0.1:${dead.port}`])
  expect(broken.stdout).toMatch(/fail +public side +no request to \S+ came back/)
  expect(broken.exitCode).toBe(6)
})

test('the command prints the URL that works', async () => {
  using server = new NaiveJsonServer(withoutPort)
  await using run = start(['--serve', import.meta.dir, '--server', `http://127.0.0.1:${server.port}`])
  expect(await run.printed(/^(http:\/\/\S+)\n/m)).toEndWith(`.localhost:${server.port}`)
})

test.each([
  [
    'http://a.tunnel.example',
    'http://tunnel.example:8080',
    ['http://a.tunnel.example:8080', 'http://a.tunnel.example'],
  ],
  // TLS ends in front of the server, which does not know of it.
  [
    'http://a.tunnel.example',
    'wss://tunnel.example',
    ['https://a.tunnel.example', 'http://a.tunnel.example'],
  ],
  [
    'http://a.elsewhere.example',
    'http://tunnel.example:8080',
    ['http://a.elsewhere.example', 'http://a.elsewhere.example:8080'],
  ],
  [undefined, 'wss://api.tunnel.example', ['https://a.tunnel.example']],
  ['javascript:alert(1)', 'http://tunnel.example', ['http://a.tunnel.example']],
])('%p by %s', (named, server, urls) => {
  expect<readonly string[]>(publicUrls('a', named, parseServer(server), false)).toEqual(urls)
})
