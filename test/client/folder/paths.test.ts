// Which file a path leads to, and that none leads out: random paths against a naive reading of a tree in memory.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { folderPath } from '../../../src/parts/functions/folder/file.ts'
import { folderHandler } from '../../../src/parts/functions/folder/handler.ts'
import { get, headerOf, readAnswer, statusOf } from '../../support/exchange.ts'
import { testWith, withoutPrivileges } from '../../support/needs.ts'
import { FUZZ, Random } from '../../support/random.ts'
import { rawDial } from '../../support/raw.ts'
import { Site, siteTunnel, WAYS } from '../../support/site.ts'

/** The public side of the folder as an object: links are the same object twice, what must not be seen is not there. */
interface Tree {
  readonly [name: string]: string | Tree
}
const SUB: Tree = { 'deep.txt': 'deep', 'ü.txt': 'umlaut' }
const DIR: Tree = { 'index.html': 'page of dir', 'x.js': 'x', sub: SUB }
const TREE: Tree = {
  'index.html': 'page',
  'a.txt': 'a',
  'b c.txt': 'space',
  '100%.txt': 'percent',
  '+.txt': 'plus',
  '%2e%2e': 'encoded twice is a name',
  'q?.txt': 'question',
  dir: DIR,
  empty: {},
  '.well-known': { 'security.txt': 'contact' },
  in: DIR,
  'in.txt': 'a',
  chain: DIR,
  absolute: SUB,
  constructor: 'constructor',
}

let site: Site
beforeAll(async () => {
  site = await Site.of({
    'index.html': 'page',
    'a.txt': 'a',
    'b c.txt': 'space',
    '100%.txt': 'percent',
    '+.txt': 'plus',
    '%2e%2e': 'encoded twice is a name',
    'q?.txt': 'question',
    'dir/index.html': 'page of dir',
    'dir/x.js': 'x',
    'dir/sub/deep.txt': 'deep',
    'dir/sub/ü.txt': 'umlaut',
    'dir/.hidden': 'secret',
    'empty/': '',
    '.well-known/security.txt': 'contact',
    '.well-known/.hidden': 'secret',
    constructor: 'constructor',
    '.env': 'secret',
    '.git/config': 'secret',
    '.git/index.html': 'secret',
    'back\\slash.txt': 'secret',
    in: '→ dir',
    'in.txt': '→ a.txt',
    chain: '→ in',
    loop: '→ loop',
    gone: '→ nowhere',
    out: '→ ../outside',
    'out.txt': '→ ../outside/secret.txt',
    up: '→ ..',
    git: '→ .git',
    'env.txt': '→ .env',
    'root.txt': '→ /etc/passwd',
    'dir/out': '→ ../../outside',
  })
  // A path that only begins like the folder's is not inside it.
  await site.write({
    absolute: `→ ${join(site.folder, 'dir/sub')}`,
    '../site-beside/secret.txt': 'secret',
    beside: '→ ../site-beside',
  })
})
afterAll(() => site[Symbol.asyncDispose]())

interface Expected {
  readonly status: 200 | 302 | 404
  readonly body?: string
}

/** What a path leads to, step by step, with nothing of the code that is tested. */
function naive(target: string): Expected {
  const parts: string[] = []
  const spelled = target.split('?')[0]!.replaceAll('\\', '/').split('/').slice(1)
  for (const [at, part] of spelled.entries()) {
    const dots = part.toLowerCase().replaceAll('%2e', '.')
    if (dots === '..') parts.pop()
    if (dots !== '..' && dots !== '.') parts.push(part)
    else if (at === spelled.length - 1) parts.push('')
  }
  const isFolder = parts.at(-1) === ''
  if (isFolder) parts.pop()
  let node: string | Tree | undefined = TREE
  for (const part of parts) {
    const name = naiveName(part)
    // A file has no children, and an object's prototype is no folder.
    const children: Tree | undefined = typeof node === 'object' ? node : undefined
    node = name !== undefined && children && Object.hasOwn(children, name) ? children[name] : undefined
  }
  if (typeof node === 'string') return isFolder ? { status: 404 } : { status: 200, body: node }
  if (node === undefined || typeof node['index.html'] !== 'string') return { status: 404 }
  return isFolder ? { status: 200, body: node['index.html'] } : { status: 302 }
}

/** Percent-decoding byte by byte. */
function naiveName(part: string): string | undefined {
  const bytes: number[] = []
  const raw = Buffer.from(part)
  for (let at = 0; at < raw.length; at++) {
    const hex = raw.toString('latin1', at + 1, at + 3)
    if (raw[at] !== 0x25) bytes.push(raw[at]!)
    else if (!/^[0-9a-f]{2}$/i.test(hex)) return undefined
    else {
      bytes.push(Number.parseInt(hex, 16))
      at += 2
    }
  }
  const name = Buffer.from(bytes)
  return name.equals(Buffer.from(name.toString())) ? name.toString() : undefined
}

/** The status alone. A body that nobody reads keeps its file open: it is cancelled, as a connection does. */
async function statusAt(folder: string, path: string): Promise<number> {
  const answer = await folderHandler(folder, false)(new Request(`http://app.localhost${path}`))
  await answer.body?.cancel()
  return answer.status
}

// Names of the tree and of what must not be seen, in pieces and whole, between everything that may separate or confuse.
const SPICE =
  '/ / / / // \\ . .. ... ..; %2e %2E%2e .%2e %2f %5c %2F.. %00 % %zz %ff %c3 %C3%BC %252e%252e ? ~ : ;'
const NAMES = [
  ...Object.keys({ ...TREE, ...DIR, ...SUB }),
  ...'secret.txt outside site site-beside beside .env .git config git env.txt out out.txt up loop gone'.split(
    ' ',
  ),
  ...'.hidden back\\slash.txt back%5cslash.txt %2eenv %61.txt root.txt etc passwd INDEX.HTML __proto__'.split(
    ' ',
  ),
]

function randomTarget(random: Random): string {
  let target = '/'
  let node: string | Tree | undefined = TREE
  for (let count = random.below(9); count > 0; count--) {
    // Mostly on the way to something that is there, and now and then off it.
    const here: Tree | undefined = typeof node === 'object' && random.chance(0.7) ? node : undefined
    const name: string = random.pick(here === undefined ? NAMES : Object.keys(here).concat('index.html'))
    if (here !== undefined) node = here[name]
    target += random.chance(0.5) ? encodeURIComponent(name) : name
    if (node === undefined || typeof node === 'string' || random.chance(0.1)) {
      if (random.chance(0.5)) break
      target += random.pick(SPICE.split(' '))
    }
    if (count > 1 || random.chance(0.3)) target += '/'
  }
  // A fragment never reaches a server; the rest of the tree's odd names have to be written so that a URL keeps them.
  return target.replaceAll('#', '%23')
}

test('random paths lead where a naive reading leads, and nowhere else', async () => {
  const handler = folderHandler(site.folder, false)
  const seen = new Map<number, number>()
  for (let seed = 0; seed < 4_000 * FUZZ; seed++) {
    const target = randomTarget(new Random(seed))
    const answer = await handler(new Request(`http://app.localhost${target}`))
    const body = await answer.text()
    const expected = naive(target)
    seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1)
    expect({ seed, target, status: answer.status }).toEqual({ seed, target, status: expected.status })
    if (expected.body !== undefined)
      expect({ seed, target, body }).toEqual({ seed, target, body: expected.body })
    expect(body).not.toContain('secret')
    if (answer.status === 302) {
      const location = answer.headers.get('location') ?? ''
      expect(location).toMatch(/^\/[^/\\]/)
      expect({ seed, location, to: naive(location).status }).toEqual({ seed, location, to: 200 })
    }
  }
  // Random is not blind: each kind of answer was reached many times.
  expect([...seen.values()].map(count => count > 50)).toEqual([true, true, true])
  expect(new Set(seen.keys())).toEqual(new Set([200, 302, 404]))
})

test('each public file is found under its name, each other one is not', async () => {
  const walk = async (tree: Tree, path: string): Promise<void> => {
    for (const [name, node] of Object.entries(tree)) {
      const at = `${path}/${encodeURIComponent(name).replaceAll('.', '%2E')}`
      // A name that is two dots, encoded, can be written in no URL but encoded twice.
      if (typeof node === 'string') expect([at, await statusAt(site.folder, at)]).toEqual([at, 200])
      else await walk(node, at)
    }
  }
  await walk(TREE, '')
  for (const path of ['/.env', '/out.txt', '/up/outside/secret.txt', '/git/config', '/env.txt', '/root.txt'])
    expect([path, await statusAt(site.folder, path)]).toEqual([path, 404])
})

test('a path is read in one way, whatever stands around it', () => {
  expect(folderPath('/')).toEqual({ names: [], isFolder: true })
  expect(folderPath('/a/b%20c/')).toEqual({ names: ['a', 'b c'], isFolder: true })
  expect(folderPath('/.well-known/x')).toEqual({ names: ['.well-known', 'x'], isFolder: false })
  for (const path of [
    '//',
    '//a',
    '/a//b',
    '/..',
    '/a/../b',
    '/.',
    '/a%2fb',
    '/a%5Cb',
    '/%00',
    '/%',
    '/%ff',
    '/a/.well-known',
  ])
    expect([path, folderPath(path)]).toEqual([path, undefined])
})

test('devices, pipes and sockets are not opened', async () => {
  const paths = { pipe: join(site.folder, 'pipe.txt'), socket: join(site.folder, 'socket.txt') }
  expect(await Bun.spawn(['mkfifo', paths.pipe]).exited).toBe(0)
  const listening = createServer()
  await new Promise<void>(resolve => listening.listen(paths.socket, resolve))
  await site.write({ 'null.txt': '→ /dev/null' })
  try {
    for (const path of ['/pipe.txt', '/socket.txt', '/null.txt']) {
      expect([path, await statusAt(site.folder, path)]).toEqual([path, 404])
    }
    // The devices' own folder.
    expect(await statusAt('/dev', '/null')).toBe(404)
  } finally {
    listening.close()
  }
})

testWith(['setpriv'], 'what this user may not read is not there', async () => {
  await site.write({ 'locked.txt': 'secret', 'open.txt': 'open' })
  expect(await Bun.spawn(['chmod', '000', join(site.folder, 'locked.txt')]).exited).toBe(0)
  const script = `
    const { folderHandler } = await import(process.argv[1])
    const handler = folderHandler(process.argv[2], false)
    const statusOf = async name => (await handler(new Request('http://app.localhost/' + name))).status
    console.log(await statusOf('open.txt'), await statusOf('locked.txt'))`
  const handler = join(import.meta.dir, '../../../src/parts/functions/folder/handler.ts')
  const child = Bun.spawn(withoutPrivileges([process.execPath, '-e', script, handler, site.folder]), {
    stdout: 'pipe',
  })
  expect(await new Response(child.stdout).text()).toBe('200 404\n')
})

test('a folder that is a link is served, and follows the link', async () => {
  await using other = await Site.of({ 'one/index.html': 'one', 'two/index.html': 'two', current: '→ one' })
  const handler = folderHandler(join(other.folder, 'current'), false)
  const page = async () => (await handler(new Request('http://app.localhost/'))).text()
  expect(await page()).toBe('one')
  expect(await Bun.spawn(['ln', '-sfn', 'two', join(other.folder, 'current')]).exited).toBe(0)
  expect(await page()).toBe('two')
})

describe.each(WAYS)('through a tunnel: %s', way => {
  test('random paths as raw bytes', async () => {
    await using tunnel = await siteTunnel(way, site.folder)
    const visitor = await rawDial(tunnel.port)
    const seen = new Set<number>()
    for (let seed = 10_000; seed < 10_000 + 300 * FUZZ; seed++) {
      // What no request line can have is encoded; backslashes stay.
      const target = randomTarget(new Random(seed)).replace(/[^\x21-\x7e]/gu, encodeURIComponent)
      await visitor.send(get(tunnel.host, target))
      const { head, payload } = await readAnswer(visitor)
      const status = statusOf(head)
      seen.add(status)
      const expected = naive(target)
      const refusal = headerOf(head, 'x-localtunnels-error')
      expect({ seed, target, status, refusal }).toEqual({
        seed,
        target,
        status: expected.status,
        refusal: undefined,
      })
      if (expected.body !== undefined)
        expect({ seed, target, payload }).toEqual({ seed, target, payload: expected.body })
      expect(payload).not.toContain('secret')
    }
    visitor.socket.terminate()
    expect(seen).toEqual(new Set([200, 302, 404]))
  })
})
