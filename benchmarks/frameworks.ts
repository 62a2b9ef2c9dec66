// The same sample app on the web frameworks people use, direct and through the tunnel. `bun benchmarks/frameworks.ts`
//
// The app: two global middlewares that change the request, an empty GET /favicon.ico, GET /users/:id answering
// `User: {id}`. The first run installs the frameworks into benchmarks/frameworks/node_modules.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './load/load.ts'
import { interrupted, launch, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken } from './measure/interleave.ts'
import { request } from './measure/ports.ts'
import { conclude, printGroup, roundsOr, say, unlessQuick } from './measure/suite.ts'
import { RAW_ORIGIN } from './peers/assemble.ts'
import { direct } from './peers/direct.ts'
import { oursJson, oursStreams } from './peers/ours.ts'
import type { Endpoint, Peer, Tunnel } from './peers/peer.ts'

const FOLDER = join(import.meta.dir, 'frameworks')

const APPS = [
  {
    name: '@tinyhttp/app (w/o exts)',
    module: '@tinyhttp/app',
    runtime: 'node',
    args: ['tinyhttp.mjs', 'bare'],
  },
  { name: '@tinyhttp/app', module: '@tinyhttp/app', runtime: 'node', args: ['tinyhttp.mjs'] },
  { name: 'express', module: 'express', runtime: 'node', args: ['express.mjs'] },
  { name: 'polka', module: 'polka', runtime: 'node', args: ['polka.mjs'] },
  { name: 'koa + @koa/router', module: 'koa', runtime: 'node', args: ['koa.mjs'] },
  { name: 'fastify', module: 'fastify', runtime: 'node', args: ['fastify.mjs'] },
  { name: 'hono', module: 'hono', runtime: 'bun', args: ['hono.mjs'] },
  { name: 'elysia', module: 'elysia', runtime: 'bun', args: ['elysia.mjs'] },
] as const

const COLUMNS = [
  column('rps', 'requests/s', '', 'higher'),
  column('mbps', 'transfer/s', 'MB', 'higher'),
  column('mean', 'latency, mean', 'ms', 'lower'),
  column('p50', 'p50', 'ms', 'lower'),
  column('p99', 'p99', 'ms', 'lower'),
  column('success', 'success', '%', 'higher'),
]

if (!existsSync(join(FOLDER, 'node_modules'))) {
  say('installing the frameworks')
  const install = Bun.spawn(['bun', 'install', '--no-save'], {
    cwd: FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await install.exited) !== 0) say('the frameworks could not be installed; what is missing is left out')
}

const subjects: Subject[] = []
const versions: Record<string, string> = { node: process.versions.node }
for (const app of APPS) {
  if (interrupted.aborted) break
  try {
    subjects.push(...(await through(app)))
  } catch (error) {
    say(`${app.name} is left out: ${error instanceof Error ? error.message : String(error)}`)
  }
}
const group = await interleave('GET /users/42, 100 connections', COLUMNS, subjects, roundsOr(3))
printGroup(group)
await conclude('frameworks', 'Frameworks', [group], versions)
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

/** Starts one app and its tunnels, checks that all say the same, and gives a line of the table for each way. */
async function through({ name, module, runtime, args }: (typeof APPS)[number]): Promise<readonly Subject[]> {
  const child = await launch([runtime, ...args], { cwd: FOLDER, ready: /^listening (\d+)$/ })
  const port = Number(child.match?.[1])
  // The package's own manifest.
  const manifest = (await Bun.file(join(FOLDER, 'node_modules', module, 'package.json')).json()) as {
    version: string
  }
  versions[module] = manifest.version
  const lines: Subject[] = []
  for (const [way, peer] of [
    ['direct', direct],
    ['tunnel', oursStreams],
    ['tunnel, JSON wire', oursJson],
  ] as const satisfies readonly (readonly [string, Peer])[]) {
    const line = `${name}@${manifest.version}, ${way}`
    try {
      const tunnel = await peer.start({ [RAW_ORIGIN]: port })
      const { [RAW_ORIGIN]: endpoint } = tunnel.endpoints
      await check(endpoint!)
      lines.push({ name: line, take: () => measure(tunnel) })
    } catch (error) {
      lines.push({ name: line, take: () => Promise.reject(error) })
    }
  }
  return lines
}

async function check(endpoint: Endpoint): Promise<void> {
  for (const [path, expected] of [
    ['/users/42', 'User: 42'],
    ['/favicon.ico', ''],
  ] as const) {
    const response = await request(endpoint, path)
    const body = await response.text()
    if (response.status !== 200 || body !== expected) {
      throw new Error(`${path} answered ${response.status} "${body.slice(0, 40)}" instead of "${expected}"`)
    }
  }
}

async function measure(tunnel: Tunnel): Promise<Taken> {
  const load = { kind: 'closed', path: '/users/42', connections: 100, seconds: unlessQuick(3, 0.2) } as const
  const { requests, errors, bytes, seconds, latency } = await run(tunnel.endpoints[RAW_ORIGIN]!, load)
  const success = (100 * (requests - errors)) / Math.max(1, requests)
  return { rps: requests / seconds, mbps: bytes / 1e6 / seconds, success, ...(latency && { ...latency }) }
}
