// The real bin sharing a TCP service: its port, a line for each connection, outages, the end.

import { describe, expect, test } from 'bun:test'
import { TunnelServer } from '../../src/index.ts'
import { TunnelClient } from '../../src/tunnel-client.ts'
import { eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { finish, start, startOnTerminal } from './bin.ts'

const { open } = closedAfterEach()

/** Two ports that follow each other, and that nothing has. */
async function neighbours(): Promise<readonly [number, number]> {
  for (;;) {
    const first = freePort()
    using probe = await listenOn(first + 1)
    if (probe !== undefined) return [first, first + 1]
  }
}

async function listenOn(port: number): Promise<{ [Symbol.dispose](): void } | undefined> {
  try {
    const listener = Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } })
    return { [Symbol.dispose]: () => listener.stop(true) }
  } catch {
    // In use: another pair may be free.
    return undefined
  }
}

async function server(tcpPorts?: string): Promise<TunnelServer> {
  const options = { port: 0, host: '127.0.0.1', limits: { drainTimeoutMs: 10 } }
  const one = open(new TunnelServer({ ...options, ...(tcpPorts !== undefined && { tcpPorts }) }))
  await one.start()
  return one
}

const ADDRESS_LINE = /^tcp:\/\/localhost:(\d+)\n/m
const CTRL_C = '\x03'

/** The origin is also looked at by the program itself: those connections say nothing. */
async function connectionThatSays(origin: RawOrigin, text: string): Promise<RawConnection> {
  const find = () => origin.connections.find(one => one.text.startsWith(text))
  await eventually(() => find() !== undefined, `a connection that says ${text}`)
  return find()!
}

/** Says `hello`, and what it was told in capitals once all of it is there. */
async function converse(port: number, origin: RawOrigin): Promise<string> {
  const visitor = await rawDial(port)
  await visitor.send('and goodbye')
  visitor.socket.end()
  const service = await connectionThatSays(origin, 'and')
  await service.send('hello ')
  await service.end()
  await service.send(service.text.toUpperCase())
  service.socket.end()
  return visitor.end()
}

describe('in a pipe', () => {
  test('stdout is the address alone; stderr has a line for each connection, and the totals', async () => {
    using service = new RawOrigin()
    const run = open(start(['tcp', `127.0.0.1:${service.port}`]))
    const port = Number(await run.printed(ADDRESS_LINE))
    expect(await converse(port, service)).toBe('hello AND GOODBYE')
    await run.printed(/127\.0\.0\.1:\d+ .* 11 B in +17 B out\n/)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toBe(`tcp://localhost:${port}\n`)
    expect(run.stderr).toMatch(/1 connection, 0 errors, .*\n$/)
  })

  test('a range of ports is a tunnel for each, on as many public ports', async () => {
    const [first, second] = await neighbours()
    using services = new DisposableStack()
    const origins = [first, second].map(port => services.use(new RawOrigin(port)))
    const remote = await neighbours()
    await using tunnels = await server(`${remote[0]}-${remote[1]}`)
    const run = open(
      start([
        ...['tcp', `127.0.0.1:${first}-${second}`, '--remote-port', `${remote[0]}-${remote[1]}`],
        ...['--server', `http://127.0.0.1:${tunnels.port}`],
      ]),
    )
    await run.printed(new RegExp(`^tcp://localhost:${remote[1]}\\n`, 'm'))
    for (const [index, origin] of origins.entries())
      expect(await converse(remote[index]!, origin)).toBe('hello AND GOODBYE')
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toBe(remote.map(port => `tcp://localhost:${port}\n`).join(''))
    expect(run.stderr).toMatch(/2 connections, 0 errors/)
  })

  test('a refused range says which of its ports is in use', async () => {
    const [first, second] = await neighbours()
    await using tunnels = await server(`${first}-${second}`)
    await using other = new TunnelClient({ server: `http://127.0.0.1:${tunnels.port}` })
    await other.tcp({ port: 1, remotePort: second })
    const { stderr } = await finish([
      ...['tcp', '3000-3001', '--remote-port', `${first}-${second}`],
      ...['--server', `http://127.0.0.1:${tunnels.port}`],
    ])
    expect(stderr).toContain(
      `error PORT_TAKEN: The public port ${second} is in use on the server. Request another port`,
    )
  })

  test('a range that does not fit is refused before anything is asked for', async () => {
    const cases = [
      [
        ['tcp', '3000-3002', '--remote-port', '20000-20001'],
        '--remote-port names 2 ports, and the service has 3.',
      ],
      [
        ['udp', '3002-3000'],
        'the port "3002-3000" is not a range of at most 256 ports from 1 to 65535, such as 27015-27030.',
      ],
      [['tls', '3000-3001'], 'A range is for TCP and UDP: a TLS tunnel has a name, no port.'],
    ] as const
    for (const [words, message] of cases) {
      const { exitCode, stderr } = await finish([...words])
      expect(stderr).toContain(message)
      expect(exitCode).toBe(2)
    }
  })

  test('--json tells the same as events', async () => {
    using service = new RawOrigin()
    const run = open(start(['tcp', `127.0.0.1:${service.port}`, '--json']))
    const ready = JSON.parse(await run.printed(/.*"type":"ready".*/))
    expect(ready).toMatchObject({ kind: 'tcp', origin: `127.0.0.1:${service.port}`, isEmbedded: true })
    const { port } = new URL(ready.url)
    expect(ready.subdomain).toBe(`tcp-${port}`)
    await converse(Number(port), service)
    const end = JSON.parse(await run.printed(/.*"type":"visitorDisconnected".*/))
    const fields = 'type time id tunnel remoteAddress remotePort durationMs bytesIn bytesOut'
    expect(Object.keys(end)).toEqual(fields.split(' '))
    expect(end).toMatchObject({
      tunnel: `tcp-${port}`,
      remoteAddress: '127.0.0.1',
      bytesIn: 11,
      bytesOut: 17,
    })
    run.kill('SIGINT')
    expect(await run.exited).toBe(0)
    const events = run.stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(events.map(({ type }) => type).filter(type => type !== 'origin')).toEqual(
      'connecting connected ready visitorConnected visitorDisconnected draining totals'.split(' '),
    )
    expect(events.at(-1)).toMatchObject({ requests: 0, connections: 1, errors: 0, bytes: 17 })
    expect(run.stderr).toBe('')
  })

  test('--remote-port is the port that it gets, here and from a server', async () => {
    using service = new RawOrigin()
    const wished = freePort()
    const here = open(start(['tcp', `127.0.0.1:${service.port}`, '--remote-port', `${wished}`]))
    expect(await here.printed(ADDRESS_LINE)).toBe(`${wished}`)
    const { url } = await server('20000-29999')
    const there = open(start(['tcp', `${service.port}`, '--remote-port', '23456', '--server', url]))
    expect(await there.printed(ADDRESS_LINE)).toBe('23456')
  })

  test('a unix socket, and a PROXY header in front of what the visitor says', async () => {
    const path = `/tmp/localtunnels-tcp-${process.pid}.sock`
    const heard = Promise.withResolvers<string>()
    using _service = Bun.listen({
      unix: path,
      socket: { data: (_socket, bytes) => heard.resolve(bytes.toString('latin1')) },
    })
    const run = open(start(['tcp', `unix:${path}`, '--proxy-protocol', 'v1']))
    const port = Number(await run.printed(ADDRESS_LINE))
    const visitor = await rawDial(port)
    const { source } = visitor.socket.endpoints() ?? {}
    expect(await heard.promise).toStartWith(`PROXY TCP4 127.0.0.1 127.0.0.1 ${source?.port} ${port}\r\n`)
    visitor.socket.terminate()
    await run.printed(/ 0 B in +0 B out {2}visitor left\n/)
  })
})

describe('on a terminal', () => {
  test('shows the port and each connection; at Ctrl+C it waits for what is open', async () => {
    using service = new RawOrigin()
    const run = open(startOnTerminal(['tcp', `127.0.0.1:${service.port}`], { NO_COLOR: '1' }))
    const port = Number(await run.printed(/ tcp:\/\/localhost:(\d+)\r\n/))
    await run.printed(new RegExp(`App +127\\.0\\.0\\.1:${service.port}\r\n`))
    await run.printed(/● live/)
    const visitor = await rawDial(port)
    await visitor.send('x')
    const atService = await connectionThatSays(service, 'x')
    await run.printed(/● live {2}1 connection, 1 open/)
    run.type(CTRL_C)
    await run.printed(/finishing 1 connection; press Ctrl\+C again to quit now/)
    await atService.send('the end')
    atService.socket.end()
    expect(await visitor.end()).toBe('the end')
    visitor.socket.end()
    expect(await run.exited).toBe(0)
    expect(run.stdout).toMatch(/1 connection, 0 errors, [^\n]*\r\n$/)
  })

  test('says that nothing listens, and heals when the service starts', async () => {
    const port = freePort()
    const run = open(startOnTerminal(['tcp', `${port}`], { NO_COLOR: '1' }))
    const publicPort = Number(await run.printed(/ tcp:\/\/localhost:(\d+)\r\n/))
    await run.printed(new RegExp(`○ nothing on :${port} yet`))
    // Reset once it is there, which may be before the runtime has told that it is.
    const reset = rawDial(publicPort).then(visitor => visitor.closed())
    expect(await reset.catch((error: unknown) => error)).toBeDefined()
    await run.printed(/ORIGIN_REFUSED\r\n/)
    using _late = Bun.listen({
      hostname: '127.0.0.1',
      port,
      socket: { open: socket => void socket.end('here'), data() {} },
    })
    await run.printed(/● live {2}1 connection\b/)
    expect(await (await rawDial(publicPort)).end()).toBe('here')
  })
})

describe('what cannot work ends with one line and an exit code', () => {
  test.each([
    ['none', [], 'KIND_REFUSED'],
    ['20000', ['--remote-port', '20001'], 'NOT_ALLOWED'],
  ])('from a server with ports %p', async (ports, args, code) => {
    const { url } = await server(ports === 'none' ? '' : ports)
    const { exitCode, stderr } = await finish(['tcp', '22', '--server', url, ...args])
    expect(stderr).toMatch(new RegExp(`^error ${code}: [^\\n]*\\n$`))
    expect(exitCode).toBe(4)
  })
})

test('a server tells of the connections to the tunnels it has', async () => {
  using service = new RawOrigin()
  const args = ['server', '--host', '127.0.0.1', '--port', '0', '--tcp-ports', '24000-24999']
  const run = open(start(args))
  const url = await run.printed(/^(http:\/\/\S+)\n/m)
  const client = open(start(['tcp', `127.0.0.1:${service.port}`, '--server', url]))
  const port = Number(await client.printed(ADDRESS_LINE))
  expect(port).toBeWithin(24_000, 25_000)
  await converse(port, service)
  await run.printed(new RegExp(`tcp-${port}  127\\.0\\.0\\.1:\\d+ .* 11 B in +17 B out\n`))
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
  expect(run.stderr).toMatch(/1 connection, 0 errors, .*\n$/)
})
