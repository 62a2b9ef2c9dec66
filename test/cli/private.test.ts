// Private services by the command line: both ends, a file, and what is said when one cannot be had.

import { expect, test } from 'bun:test'
import { ConfigFiles } from '../support/config-files.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, start } from './bin.ts'

const TOKENS = ['share', { token: 'connect', connect: ['web', 'db'] }]

function app(text: string) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(text) })
  return { port: server.port ?? 0, [Symbol.dispose]: () => void server.stop(true) }
}

const get = async (port: number): Promise<string> => (await fetch(`http://localhost:${port}/`)).text()

test('one end shares, the other connects, and each says what to do next', async () => {
  using web = app('web')
  await using server = await startServer({ tokens: TOKENS })
  const address = ['--server', `127.0.0.1:${server.port}`]
  const port = freePort()
  await using sharing = start([`${web.port}`, '--private', 'web', ...address, '--token', 'share'])
  await sharing.printed(/^private:web$/m)
  await sharing.printed(new RegExp(`run there: localtunnels connect web --server ${address[1]}$`, 'm'))
  await using end = start(['connect', 'web', '--port', `${port}`, ...address, '--token', 'connect'])
  await end.printed(new RegExp(`^tcp://localhost:${port}$`, 'm'))
  expect(await get(port)).toBe('web')
  const failing = async (name: string, token: string, ...more: readonly string[]) => {
    const { exitCode, stderr } = await finish(['connect', name, ...address, '--token', token, ...more])
    return [exitCode, stderr]
  }
  expect(await failing('db', 'connect')).toEqual([
    4,
    expect.stringMatching(
      /TUNNEL_NOT_FOUND.*"db" now\. Start the other client with --private db, or check the name\.\n$/,
    ),
  ])
  expect(await failing('nas', 'connect')).toEqual([
    4,
    expect.stringMatching(/NOT_ALLOWED.*"nas".*localtunnels token add <name> --connect nas\n$/),
  ])
  const tunnel = await finish(['3000', ...address, '--token', 'connect'])
  expect(tunnel.stderr).toMatch(/NOT_ALLOWED: The token is for connections to private services/)
  expect(await failing('web', 'connect', '--port', `${port}`)).toEqual([
    5,
    expect.stringMatching(/PORT_IN_USE/),
  ])
  const { exitCode, stderr } = await finish(['connect', 'web'])
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/needs a tunnel server.*localtunnels login/)])
}, 60_000)

test('a file has both kinds of ends, and is followed', async () => {
  using web = app('web')
  using db = app('db')
  await using server = await startServer({ tokens: TOKENS })
  await using files = await ConfigFiles.make()
  const head = (token: string) => `server = "127.0.0.1:${server.port}"\ntoken = "${token}"\n`
  const ports = [freePort(), freePort()] as const
  await files.write(
    'share.toml',
    `${head('share')}[services.web]\nport = ${web.port}\nprivate = true\n[services.db]\nkind = "tcp"\nport = ${db.port}\nprivate = true\n`,
  )
  await using sharing = start(['up', '--config', files.path('share.toml')])
  await sharing.printed(/^db {2}private:db$/m)
  const ends = (...names: readonly (readonly [string, number, string])[]) =>
    names.map(([name, port, to]) => `[services.${name}]\nkind = "connect"\nport = ${port}\n${to}`).join('')
  await files.write('connect.toml', `${head('connect')}${ends(['web', ports[0], ''])}`)
  await using end = start(['up', '--config', files.path('connect.toml')])
  await end.printed(new RegExp(`^web {2}tcp://localhost:${ports[0]}$`, 'm'))
  expect(await get(ports[0])).toBe('web')
  await files.write(
    'connect.toml',
    `${head('connect')}${ends(['web', ports[0], ''], ['data', ports[1], 'to = "db"\n'])}`,
  )
  await end.printed(new RegExp(`^data {2}tcp://localhost:${ports[1]}$`, 'm'))
  expect(await get(ports[1])).toBe('db')
  expect(await get(ports[0])).toBe('web')
}, 60_000)
