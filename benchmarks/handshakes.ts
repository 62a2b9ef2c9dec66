// TLS handshakes a second, full and resumed, beside nginx and Caddy in the same run: `bun benchmarks/handshakes.ts [--seconds 3]`.
//
// Each handshake is followed by one small request, as TLS 1.3 hands out tickets behind it. `openssl s_time` opens one connection after
// the other; as many of it run at once as half of the cores. One certificate with an ECDSA key (P-256) serves all three. nginx has
// one worker, since our server has one thread for handshakes; Caddy uses what cores it likes. "Bun alone" is a TLS listener of the
// runtime that answers the same bytes to whatever comes: what no code of ours can be below.

import { TunnelServer } from '../src/index.ts'
import { type Child, launch } from './measure/children.ts'
import { readFlags } from './measure/flags.ts'
import { freePort } from './measure/ports.ts'
import { cpuSeconds } from './measure/proc.ts'
import { binary, command, scratch } from './peers/binary.ts'
import { certificate } from './peers/certificate.ts'

const values = readFlags(
  import.meta.path,
  {
    seconds: { type: 'string', default: '3' },
    serve: { type: 'string', default: '' },
  },
  ['seconds'],
)
const seconds = Math.max(1, Number(values.seconds) || 3)
const AT_ONCE = Math.max(1, navigator.hardwareConcurrency >> 1)

interface Server {
  readonly name: string
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

const pair = certificate()
const files = scratch('handshakes')

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello')

if (values.serve === 'bun') {
  const socket = {
    data(raw: Bun.Socket) {
      raw.write(ANSWER)
      raw.end()
    },
  }
  const { cert, key } = pair
  console.log(`ready ${Bun.listen({ hostname: '127.0.0.1', port: 0, tls: { cert, key }, socket }).port}`)
  await new Promise(() => {})
}
if (values.serve === 'ours') {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'], tls: pair })
  await server.start()
  console.log(`ready ${server.port}`)
  await new Promise(() => {})
}

async function inBun(name: string, what: 'ours' | 'bun'): Promise<Server> {
  const child = await launch(['bun', import.meta.path, '--serve', what], {
    ready: /^ready (\d+)$/,
    deadlineMs: 30_000,
  })
  return { name, port: Number(child.match?.[1]), pid: child.pid, stop: () => child.stop() }
}

async function listening(name: string, words: readonly string[], port: number): Promise<Server> {
  const child: Child = await launch(words, { deadlineMs: 30_000 })
  for (let tries = 0; tries < 100; tries++) {
    const isUp = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
      socket => {
        socket.end()
        return true
      },
      () => false,
    )
    if (isUp) break
    await Bun.sleep(100)
  }
  return { name, port, pid: child.pid, stop: () => child.stop() }
}

function nginx(): Promise<Server> {
  const port = freePort()
  const path = files.path('nginx.conf')
  files.write(
    'nginx.conf',
    `daemon off; master_process off; pid ${files.path('nginx.pid')}; error_log stderr crit;
events { worker_connections 1024; }
http { access_log off; server { listen 127.0.0.1:${port} ssl;
 ssl_certificate ${pair.certFile}; ssl_certificate_key ${pair.keyFile}; ssl_session_cache off; ssl_session_tickets on;
 location / { return 200 "hello"; } } }`,
  )
  return listening('nginx', command('nginx', `-c ${path}`), port)
}

function caddy(): Promise<Server> {
  const port = freePort()
  const path = files.path('Caddyfile')
  files.write(
    'Caddyfile',
    `{\n admin off\n auto_https off\n}\nhttps://localhost:${port}, https://127.0.0.1:${port} {\n tls ${pair.certFile} ${pair.keyFile}\n respond "hello"\n}\n`,
  )
  return listening('caddy', command('caddy', `run --adapter caddyfile --config ${path}`), port)
}

/** Connections a second of all programs together, and the CPU time of the server for each of them. */
async function rate({ port, pid }: Server, kind: 'new' | 'reuse'): Promise<string> {
  const one = async (): Promise<number> => {
    const words = [
      'openssl',
      's_time',
      '-connect',
      `127.0.0.1:${port}`,
      `-${kind}`,
      '-time',
      `${seconds}`,
      '-www',
      '/',
    ]
    const child = Bun.spawn(words, { stdout: 'pipe', stderr: 'ignore' })
    const text = await new Response(child.stdout).text()
    const [, count = '0', real = '1'] = /(\d+) connections in (\d+) real seconds/.exec(text) ?? []
    connections += Number(count)
    return Number(count) / Number(real)
  }
  let connections = 0
  const before = cpuSeconds([pid])
  const all = await Promise.all(Array.from({ length: AT_ONCE }, one))
  const cpuMs = ((cpuSeconds([pid]) - before) * 1_000) / connections
  return `${Math.round(all.reduce((sum, count) => sum + count, 0))} (${cpuMs.toFixed(2)} ms)`
}

console.log('| | full handshakes / s (CPU of the server for each) | resumed / s |\n|---|---:|---:|')
for (const [program, start] of [
  ['', () => inBun('ours', 'ours')],
  ['', () => inBun('Bun alone', 'bun')],
  ['nginx', nginx],
  ['caddy', caddy],
] as const) {
  if (program !== '' && binary(program) === null) {
    console.log(`| ${program} | not installed: apt-get install ${program} | |`)
    continue
  }
  const server = await start()
  try {
    console.log(`| ${server.name} | ${await rate(server, 'new')} | ${await rate(server, 'reuse')} |`)
  } finally {
    await server.stop()
  }
}
