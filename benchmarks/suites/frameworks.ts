// The same sample app on the web frameworks people use, direct and through the tunnel. `bun benchmarks/index.ts frameworks`
//
// The app: two global middlewares that change the request, an empty GET /favicon.ico, GET /users/:id answering
// `User: {id}`. The first run installs the frameworks into benchmarks/frameworks/node_modules.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { interrupted, launch } from '../measure/children.ts'
import { COLUMNS, loadRow } from '../measure/load-rows.ts'
import type { Table } from '../measure/result.ts'
import { measure, type Row, type Scene } from '../measure/rounds.ts'
import { reasonOf } from '../measure/samples.ts'
import { conclude, isQuick, options, refuse, say, unlessQuick } from '../measure/suite.ts'
import { direct } from '../peers/floors.ts'
import { choose } from '../peers/list.ts'
import { oursCli, oursJson, oursLibrary } from '../peers/ours.ts'
import { ratholeBest } from '../peers/tcp.ts'

const FOLDER = join(import.meta.dir, '../frameworks')

const APPS = [
  ['@tinyhttp/app (w/o exts)', '@tinyhttp/app', 'node', 'tinyhttp.mjs', 'bare'],
  ['@tinyhttp/app', '@tinyhttp/app', 'node', 'tinyhttp.mjs'],
  // It has no build for CommonJS any more: `require` of its modules.
  ['@tinyhttp/app (cjs)', '@tinyhttp/app', 'node', 'tinyhttp.mjs', 'cjs'],
  ['express', 'express', 'node', 'express.mjs'],
  ['polka', 'polka', 'node', 'polka.mjs'],
  ['koa + @koa/router', 'koa', 'node', 'koa.mjs'],
  ['fastify', 'fastify', 'node', 'fastify.mjs'],
  ['hono', 'hono', 'bun', 'hono.mjs'],
  ['elysia', 'elysia', 'bun', 'elysia.mjs'],
] as const

if (!existsSync(join(FOLDER, 'node_modules'))) {
  say('installing the frameworks')
  const install = Bun.spawn(['bun', 'install', '--no-save'], {
    cwd: FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await install.exited) !== 0) say('the frameworks could not be installed; what is missing is left out')
}

const tables: Table[] = []
const versions: Record<string, string> = { node: process.versions.node }
const peers = choose([direct, oursLibrary, oursCli, oursJson, ratholeBest], {
  names: options.peers,
  quick: isQuick,
})
const names = APPS.map(([name]) => name)
const unknown = options.only?.find(id => !(names as readonly string[]).includes(id))
if (unknown !== undefined) refuse(`there is no table ${unknown}; there are: ${names.join(' ')}`)
for (const [index, [name, module, runtime, ...args]] of APPS.entries()) {
  // Of a smoke run every third one: each way to load tinyhttp is one of three.
  const isWanted = options.only?.includes(name) ?? (!isQuick || index % 3 === 2)
  if (interrupted.aborted || !isWanted) continue
  try {
    const child = await launch([runtime, ...args], { cwd: FOLDER, ready: /^listening (\d+)$/ })
    const port = Number(child.match?.[1])
    // The package's own manifest.
    const manifest = (await Bun.file(join(FOLDER, 'node_modules', module, 'package.json')).json()) as {
      version: string
    }
    versions[module] = manifest.version
    tables.push(...(await through(name, port, 1 / (APPS.length - index))))
    await child.stop()
  } catch (error) {
    say(`${name} is left out: ${reasonOf(error)}`)
  }
}
await conclude('frameworks', 'Frameworks', tables, versions)

async function through(name: string, port: number, part: number): Promise<readonly Table[]> {
  const row = loadRow({
    id: name,
    title: `${name}: GET /users/42, 100 connections`,
    columns: COLUMNS.rate,
    exchanges: [{ to: 'app', path: '/users/42', answer: Buffer.from('User: 42') }],
    path: 'ordinary',
    connections: 100,
  })
  const all = peers.map(peer => ({
    ...peer,
    plan: (_: unknown, site: Parameters<typeof peer.plan>[1]) => peer.plan({ app: port }, site),
  }))
  const { tables } = await measure(
    [{ origins: [], peers: all, rows: [row], warmUp: scene => warmUp(scene, row) }],
    [],
    part,
  )
  return tables
}

async function warmUp(scene: Scene, row: Row): Promise<void> {
  const until = performance.now() + unlessQuick(options.minutes === undefined ? 1_500 : 300, 100)
  while (performance.now() < until) await row.take(scene)
}
