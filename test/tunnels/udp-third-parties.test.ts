// Programs of other people that speak UDP, through a tunnel: iperf3, and dig asking dnsmasq. Those not there are skipped.

import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { TunnelClient } from '../../src/index.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'ignore' })
  return new Response(child.stdout).text()
}

const client = (serverPort: number): TunnelClient =>
  new TunnelClient({ server: `http://127.0.0.1:${serverPort}` })

for (const [name, flags] of [
  ['towards the service', []],
  ['towards the visitor', ['-R']],
] as const)
  testWith(['iperf3'], `every datagram of iperf3 arrives or is counted as dropped, ${name}`, async () => {
    const port = freePort()
    await using _iperf = Bun.spawn(['iperf3', '-s', '-B', '127.0.0.1', '-p', `${port}`], {
      stdout: 'ignore',
      stderr: 'ignore',
    })
    await eventually(() => isListening(port), 'iperf3 to listen')
    await using server = await startServer()
    await using tunnels = client(server.port)
    const tcp = await tunnels.tcp({ port, host: '127.0.0.1' })
    const remotePort = tcp.port ?? 0
    const tunnel = await tunnels.udp({ port, remotePort })
    const before = kernelDrops()
    const rate = ['-u', '-b', '20M', '-l', '1200', '-t', '1', '-J']
    const report = await run('iperf3', '-c', '127.0.0.1', '-p', `${remotePort}`, ...rate, ...flags)
    // The documented JSON output of iperf3.
    const { end, error } = JSON.parse(report) as {
      readonly error?: string
      readonly end: { readonly sum: { readonly packets: number; readonly lost_packets: number } }
    }
    expect(error).toBeUndefined()
    expect(end.sum.packets).toBeGreaterThan(1_000)
    // A busy machine may lose some, in full buffers of the kernel or of the tunnel: each of them is counted.
    const dropped = server.getStats().droppedDatagrams + tunnel.droppedDatagrams
    expect(end.sum.lost_packets).toBeLessThanOrEqual(kernelDrops() - before + dropped)
  })

/** Datagrams that the kernel dropped, of all sockets of this machine, because a buffer was full. */
function kernelDrops(): number {
  const [names = '', values = ''] = readFileSync('/proc/net/snmp', 'latin1').match(/^Udp:.*$/gm) ?? []
  const counts = values.split(' ')
  const of = (name: string) => Number(counts[names.split(' ').indexOf(name)])
  return of('InErrors') + of('SndbufErrors')
}

/** Looked up in the kernel's table: a connection would be a test for iperf3. */
function isListening(port: number): boolean {
  const table = readFileSync('/proc/net/tcp', 'latin1')
  return table.includes(`:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`)
}

// Needs bind9-dnsutils and dnsmasq.
testWith(['dig', 'dnsmasq'], 'dig asks dnsmasq by UDP, and by TCP when the answer is long', async () => {
  const port = freePort()
  const text = 'x'.repeat(200)
  await using _dns = Bun.spawn(
    [
      'dnsmasq',
      ...['--no-daemon', '--no-hosts', '--no-resolv', '--bind-interfaces', '--listen-address=127.0.0.1'],
      ...[
        `--port=${port}`,
        '--address=/shop.example/192.0.2.7',
        '--user=',
        '--pid-file=',
        '--edns-packet-max=4096',
      ],
      ...Array.from({ length: 12 }, (_, index) => `--txt-record=long.example,${index}${text}`),
    ],
    { stdout: 'ignore', stderr: 'ignore' },
  )
  await eventually(() => isListening(port), 'dnsmasq to listen')
  await using server = await startServer()
  await using tunnels = client(server.port)
  const tcp = await tunnels.tcp({ port, host: '127.0.0.1' })
  const remotePort = tcp.port ?? 0
  await tunnels.udp({ port, remotePort })
  const dig = (...what: string[]) =>
    run('dig', '@127.0.0.1', '-p', `${remotePort}`, '+tries=5', '+time=1', ...what)
  expect(await dig('+short', 'shop.example')).toBe('192.0.2.7\n')
  const long = await dig('+noedns', 'long.example', 'TXT')
  expect(long).toContain('Truncated, retrying in TCP mode')
  expect(long.match(/"\d+x+"/g)?.length).toBe(12)
  // As one datagram of 2.6 kB, where the visitor says that it takes it.
  const whole = await dig('+bufsize=4096', '+notcp', 'long.example', 'TXT')
  expect(whole).not.toContain('Truncated')
})
