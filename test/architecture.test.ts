// Who may import whom: the floors of the house, kept by looking at the import text.

import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const ROOT = `${import.meta.dir}/../src`

/** Single files that both ends stand on. */
const LOW = [
  'accelerator',
  'bytes',
  'events',
  'deferred',
  'descriptors',
  'socket',
  'datagram-socket',
  'flow',
  'sockets',
  'event-loop',
  'shares',
  'join',
  'version',
  'option-names',
]

/** Room → the rooms it may import from, besides itself. A room is a folder of src/, or a file directly in it. */
const ALLOWED: Record<string, readonly string[]> = {
  errors: [],
  events: [],
  deferred: [],
  version: [],
  socket: [],
  'datagram-socket': [],
  names: ['errors'],
  libc: [],
  'private-socket': [],
  'file-watch': [],
  'state-folder': [],
  certificates: ['errors', 'events', 'file-watch', 'store', 'x509'],
  x509: ['certificates', 'errors'],
  directory: [],
  'shared-rates': [],
  directories: ['directory', 'shared-rates', 'store', 'private-socket', 'errors'],
  cluster: ['directory', 'directories', 'shared-rates'],
  plugin: ['errors', 'branding'],
  gcra: ['plugin'],
  guard: [],
  'option-names': ['errors'],
  'own-guard': ['errors', 'guard', 'option-names', 'seal'],
  seal: [],
  'json-schema': [],
  networks: [],
  countries: ['errors', 'file-watch'],
  plugins: [
    'paths',
    'networks',
    'countries',
    'shared-rates',
    'plugin',
    'gcra',
    'version',
    'guard',
    'own-guard',
    'option-names',
    'seal',
    'store',
    'tokens',
    'http',
    'errors',
    'deferred',
  ],
  store: ['errors'],
  inbox: [],
  tokens: ['wire'],
  stores: ['store', 'inbox', 'operations', 'tokens', 'errors'],
  descriptors: ['libc'],
  measures: [],
  operations: [],
  accelerator: ['libc', 'descriptors', 'socket', 'http', 'bytes', 'measures'],
  sockets: ['socket', 'datagram-socket', 'errors', 'deferred', 'accelerator', 'bytes', 'libc', 'descriptors'],
  wire: ['errors', 'bytes'],
  bytes: [],
  shares: [],
  session: ['wire', 'errors', 'socket', 'bytes'],
  join: ['session', 'errors', 'socket', 'bytes'],
  flow: ['session', 'wire', 'socket'],
  'event-loop': ['session'],
  branding: ['errors'],
  http: ['errors', 'bytes', 'branding'],
  handler: ['http', 'bytes', 'errors'],
  http2: ['bytes', 'http'],
  paths: ['http', 'wire', 'errors'],
  server: [
    'branding',
    'session',
    'http',
    'wire',
    'names',
    'networks',
    'errors',
    'certificates',
    'x509',
    'directory',
    'inbox',
    'plugin',
    'gcra',
    'guard',
    'tokens',
    'measures',
    'operations',
    'private-socket',
    ...LOW,
  ],
  client: [
    'session',
    'http',
    'http2',
    'wire',
    'names',
    'networks',
    'errors',
    'guard',
    'own-guard',
    'file-watch',
    'state-folder',
    'exchange',
    ...LOW,
  ],
  exchange: ['errors'],
  signatures: ['client', 'guard', 'paths', 'errors'],
  'kept-bodies': ['server', 'wire', 'bytes', 'shares'],
  'kept-tokens': ['server', 'tokens', 'errors'],
  'exchange-filter': ['exchange'],
  parts: [
    'server',
    'client',
    'session',
    'wire',
    'http',
    'http2',
    'exchange',
    'exchange-filter',
    'signatures',
    'paths',
    'handler',
    'kept-bodies',
    'kept-tokens',
    'plugin',
    'errors',
    'events',
    'socket',
    'sockets',
    'guard',
    'measures',
    'deferred',
    'networks',
    'names',
    'operations',
    'option-names',
    'flow',
    'tokens',
    'version',
    'descriptors',
    'directory',
    'join',
    'event-loop',
    'inbox',
    'bytes',
    'certificates',
    'x509',
    'state-folder',
    'shares',
    'json-schema',
    'accelerator',
  ],
  'tunnel-server': ['parts', 'server'],
  'tunnel-client': ['parts', 'client'],
  reserve: ['tunnel-client', 'client'],
  integrations: [
    'signatures',
    'client',
    'tunnel-client',
    'reserve',
    'tunnel-server',
    'parts',
    'server',
    'errors',
    'deferred',
    'guard',
    'option-names',
  ],
  ui: ['exchange', 'exchange-filter', 'parts', 'server'],
  config: [
    'countries',
    'server',
    'shared-rates',
    'store',
    'client',
    'errors',
    'names',
    'guard',
    'option-names',
  ],
  tls: ['certificates', 'store', 'stores'],
  index: [
    'reserve',
    'parts',
    'countries',
    'branding',
    'config',
    'tunnel-client',
    'tunnel-server',
    'server',
    'client',
    'errors',
    'names',
    'version',
    'plugin',
    'plugins',
    'guard',
    'inbox',
    'operations',
    'store',
    'tokens',
    'stores',
  ],
  cli: [
    'tunnel-client',
    'tunnel-server',
    'parts',
    'paths',
    'countries',
    'networks',
    'exchange',
    'exchange-filter',
    'shared-rates',
    'plugin',
    'directories',
    'operations',
    'store',
    'stores',
    'tokens',
    'kept-tokens',
    'index',
    'guard',
    'own-guard',
    'plugins',
    'file-watch',
    'state-folder',
    'certificates',
    'x509',
    'config',
    'server',
    'client',
    'session',
    'http',
    'paths',
    'wire',
    'names',
    'errors',
    'libc',
    ...LOW,
  ],
}

/** Floors that know neither a runtime nor the time: whatever they need of either is handed in. */
const PURE = [
  'bytes',
  'shares',
  'join',
  'flow',
  'datagram-socket',
  'wire',
  'session',
  'http',
  'http2',
  'handler',
  'paths',
  'errors',
  'events',
  'names',
  'socket',
]
const IMPURE =
  /\b(?:Bun\.|setTimeout|setInterval|setImmediate|queueMicrotask|Date\.now|performance\.)|from '(?:node|bun):/

const files = [...new Glob('**/*.ts').scanSync(ROOT)].sort()
/** `client.ts` is the entry of that name, beside the room. */
const roomOf = (path: string) => (path === 'client.ts' ? 'index' : path.split('/')[0]!.replace(/\.ts$/, ''))
const codeOf = async (file: string) =>
  (await Bun.file(`${ROOT}/${file}`).text()).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')

test('every room imports only from the floors below it', async () => {
  const broken: string[] = []
  for (const file of files) {
    const room = roomOf(file)
    for (const [, target] of (await codeOf(file)).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const resolved = new URL(target!, `file:///${file}`).pathname.slice(1)
      // What builds the pages of a clone, and is in no package.
      if (resolved === 'tools/pages.ts' && file === 'http/built-page.ts') continue
      // Runs while the file is read; a package has its result.
      if (resolved === 'tools/page-style.ts' && file === 'http/pages.ts') continue
      const into = roomOf(resolved)
      // A part, wherever it is: the next test judges it.
      if (into === 'parts' && partOf(file) !== undefined) continue
      // A part has what it is at the client in a folder of its own; two are of the client alone.
      const other = /^parts\/(?:[^/]+\/client|functions|inspect|webhooks)\//.test(file) ? 'server' : 'client'
      if (room === 'parts' && into === other) broken.push(`${file} imports ${resolved}`)
      if (into !== room && !ALLOWED[room]?.includes(into)) broken.push(`${file} imports ${resolved}`)
    }
  }
  expect(broken).toEqual([])
})

/** Optional parts: which files are theirs, and how many imports lead there from the core. A number here only falls. */
const PARTS: Record<string, { readonly files: RegExp; readonly imports: number }> = {
  pages: { files: /^parts\/pages\//, imports: 0 },
  patience: { files: /^parts\/patience\//, imports: 0 },
  pressure: { files: /^parts\/pressure\//, imports: 0 },
  private: { files: /^parts\/private\//, imports: 0 },
  'PROXY protocol': { files: /^parts\/proxy-protocol\//, imports: 0 },
  shaping: { files: /^parts\/shaping\//, imports: 0 },
  timing: { files: /^parts\/timing\//, imports: 0 },
  events: { files: /^parts\/events\//, imports: 0 },
  observers: { files: /^parts\/observers\//, imports: 0 },
  middlewares: { files: /^parts\/middlewares\//, imports: 0 },
  functions: { files: /^parts\/functions\//, imports: 0 },
  guards: { files: /^parts\/guards\//, imports: 0 },
  cluster: { files: /^parts\/cluster\//, imports: 0 },
  copies: { files: /^parts\/copies\//, imports: 0 },
  inbox: { files: /^parts\/inbox\//, imports: 0 },
  bans: { files: /^parts\/bans\//, imports: 0 },
  rewriting: { files: /^parts\/rewriting\//, imports: 0 },
  admin: { files: /^parts\/admin\//, imports: 0 },
  lanes: { files: /^parts\/lanes\//, imports: 0 },
  'JSON wire': {
    files: /^parts\/json-wire\//,
    imports: 0,
  },
  'HTTP/2': { files: /^(?:http2|parts\/http2)\//, imports: 0 },
  'HTTP/3': { files: /^parts\/http3\//, imports: 0 },
  ACME: { files: /^certificates\//, imports: 0 },
  inspector: { files: /^parts\/inspect\//, imports: 0 },
  webhooks: { files: /^parts\/webhooks\//, imports: 0 },
}
const CORE = ['server', 'client', 'wire', 'session', 'http', 'sockets', 'x509']

const partOf = (file: string) => Object.keys(PARTS).find(part => PARTS[part]!.files.test(file))

test('from the core, so many imports lead to each part as are written down, types included', async () => {
  const found = Object.fromEntries(Object.keys(PARTS).map(part => [part, 0]))
  for (const file of files) {
    if (!CORE.includes(roomOf(file)) || partOf(file) !== undefined) continue
    for (const [, target] of (await codeOf(file)).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const part = partOf(new URL(target!, `file:///${file}`).pathname.slice(1))
      if (part !== undefined) found[part]! += 1
    }
  }
  expect(found).toEqual(
    Object.fromEntries(Object.entries(PARTS).map(([part, { imports }]) => [part, imports])),
  )
})

/** The folders of each end, each on those behind it. A root has its own files, at the client without what all stand on. */
const FLOORS = {
  server: [
    'server',
    'listening',
    'registration',
    'fronts',
    'routing',
    'context',
    'tunnels',
    'upstreams',
    'limits',
    'contracts',
    'settings',
  ],
  client: ['client', 'proxies', 'reach', 'tunnels', 'contracts', 'carriers', 'origins', 'settings'],
} as const
/** Imports from a folder in front, types included: the numbers only fall. */
const ARROWS_UP: Readonly<Record<keyof typeof FLOORS, Readonly<Record<string, number>>>> = {
  server: { 'contracts → limits': 9, 'contracts → tunnels': 8 },
  client: {
    'carriers → contracts': 3,
    'carriers → proxies': 1,
    'carriers → reach': 1,
    'carriers → tunnels': 2,
    'contracts → tunnels': 2,
    'origins → carriers': 2,
    'origins → reach': 1,
    'settings → carriers': 2,
    'settings → contracts': 2,
    'settings → origins': 1,
    'settings → proxies': 1,
    'settings → reach': 2,
    'settings → tunnels': 2,
    'tunnels → client': 2,
  },
}

test.each(['server', 'client'] as const)('in the %s, folders stand on each other', async end => {
  const floors: readonly string[] = FLOORS[end]
  const found: Record<string, number> = {}
  const folderOf = (path: string) =>
    path.startsWith('client/') && /^client\/(?!client\.|parts\.)[^/]+$/.test(path)
      ? 'settings'
      : path.split('/').at(-2)!
  const ours = files.filter(one => one.startsWith(`${end}/`))
  expect([...new Set(ours.map(folderOf))].toSorted()).toEqual(floors.toSorted())
  for (const file of ours)
    for (const [, target] of (await codeOf(file)).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const resolved = new URL(target!, `file:///${file}`).pathname.slice(1)
      if (!resolved.startsWith(`${end}/`)) continue
      const [from, into] = [folderOf(file), folderOf(resolved)]
      if (floors.indexOf(into) >= floors.indexOf(from)) continue
      const arrow = `${from} → ${into}`
      found[arrow] = (found[arrow] ?? 0) + 1
    }
  expect(found).toEqual(ARROWS_UP[end])
})

test('a folder of an end, or of a part, has at most 33 files; of the server and the client at most 18', () => {
  const counts = new Map<string, number>()
  for (const file of files) {
    const folder = file.split('/').slice(0, -1).join('/')
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const crowded = [...counts].filter(
    ([folder, count]) =>
      (/^(?:server|client)\b/.test(folder) && count > 18) || (folder.startsWith('parts/') && count > 33),
  )
  expect(crowded).toEqual([])
})

test('contracts are types, and name no class', async () => {
  const broken: string[] = []
  for (const file of files.filter(one => /^(?:server|client)\/contracts\//.test(one))) {
    const code = await codeOf(file)
    if (/^import (?!type\b)|^(?:export )?(?:abstract )?class /m.test(code)) broken.push(file)
  }
  expect(broken).toEqual([])
})

/** Parts that need another one, and what beside the two roots knows a part. */
const PAIRS = [
  'HTTP/3 → HTTP/2',
  'cli/captured/inspector-session.ts → inspector',
  'cli/mcp/sessions.ts → inspector',
  'cli/sharing/rehearsal.ts → private',
  'cli/sharing/report.ts → inspector',
  'cli/workers/workers-admin.ts → admin',
  'client.ts → functions',
  'ui/admin/address.ts → admin',
  'ui/admin/api.ts → admin',
]

test('a part imports another one only where that is listed', async () => {
  const found = new Set<string>()
  for (const file of files) {
    if (file === 'tunnel-server.ts' || file === 'tunnel-client.ts') continue
    for (const [, target] of (await codeOf(file)).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const resolved = new URL(target!, `file:///${file}`).pathname.slice(1)
      const [from, into] = [partOf(file) ?? file, partOf(resolved) ?? resolved]
      if (resolved.startsWith('parts/') && from !== into) found.add(`${from} → ${into}`)
    }
  }
  expect([...found].sort()).toEqual(PAIRS)
})

/** Groups of files that import each other, directly or through others; by Tarjan's algorithm. */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const lowest = new Map<string, number>()
  const open: string[] = []
  const visit = (file: string): number => {
    const own = lowest.size
    lowest.set(file, own)
    open.push(file)
    let low = own
    for (const next of imports.get(file) ?? []) {
      const seen = lowest.get(next)
      if (seen === undefined) low = Math.min(low, visit(next))
      else if (open.includes(next)) low = Math.min(low, seen)
    }
    lowest.set(file, low)
    if (low === own) {
      const circle = open.splice(open.indexOf(file))
      if (circle.length > 1) found.push(circle.toSorted())
    }
    return low
  }
  for (const file of imports.keys()) if (!lowest.has(file)) visit(file)
  return found
}

/** What each file imports when it is loaded; not what it loads later. `hasTypes`: types, too, which are gone when the program runs. */
async function importsOf(hasTypes: boolean): Promise<Map<string, string[]>> {
  const imports = new Map<string, string[]>()
  for (const file of files) {
    const targets: string[] = []
    for (const [, isType, names, target] of (await codeOf(file)).matchAll(
      /^(?:import|export)\s+(type\s+)?([^'"]*?)from\s+'(\.[^']+)'/gm,
    )) {
      const isErased = isType !== undefined || /^\{(?:\s*type\s[^,}]*,?)+\s*\}\s*$/.test(names!)
      if (hasTypes || !isErased) targets.push(new URL(target!, `file:///${file}`).pathname.slice(1))
    }
    imports.set(file, targets)
  }
  return imports
}

test('files import each other in groups of four at most, and none does at run time', async () => {
  expect(circles(await importsOf(false))).toEqual([])
  expect(circles(await importsOf(true)).filter(({ length }) => length > 4)).toEqual([])
})

test('every room is on the plan', () => {
  expect([...new Set(files.map(roomOf))].filter(room => !(room in ALLOWED))).toEqual([])
})

test('the pure floors name no runtime and no clock', async () => {
  const broken: string[] = []
  for (const file of files) {
    if (PURE.includes(roomOf(file)) && IMPURE.test(await codeOf(file))) broken.push(file)
  }
  expect(broken).toEqual([])
})

test('of the accelerator, the rest of the code knows the contract and the door', async () => {
  const broken: string[] = []
  for (const file of files) {
    if (file.startsWith('accelerator/')) continue
    for (const [, target] of (await codeOf(file)).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const resolved = new URL(target!, `file:///${file}`).pathname.slice(1)
      if (resolved.startsWith('accelerator/') && resolved !== 'accelerator/door.ts')
        broken.push(`${file} imports ${resolved}`)
    }
  }
  expect(broken).toEqual([])
})

test('of a stream of the session, the rest of the code knows the contract', async () => {
  const broken: string[] = []
  for (const file of files)
    if (roomOf(file) !== 'session' && (await codeOf(file)).includes("session/stream.ts'")) broken.push(file)
  expect(broken).toEqual([])
})

test('the client names Bun only through sockets/', async () => {
  const broken: string[] = []
  for (const file of files) {
    if (roomOf(file) === 'client' && /\bBun\b/.test(await codeOf(file))) broken.push(file)
  }
  expect(broken).toEqual([])
})

test('there is no drawer for everything: no utils, helpers, common, types, Manager', async () => {
  expect(files.filter(file => /(?:^|\/)(?:utils?|helpers?|common|types|misc)(?:\.ts|\/)/.test(file))).toEqual(
    [],
  )
  const managers: string[] = []
  for (const file of files) if (/class \w*Manager\b/.test(await codeOf(file))) managers.push(file)
  expect(managers).toEqual([])
})

test('each file opens with one line that says its purpose', async () => {
  const silent: string[] = []
  for (const file of files) {
    if (!(await Bun.file(`${ROOT}/${file}`).text()).startsWith('// ')) silent.push(file)
  }
  expect(silent).toEqual([])
})

const vague = /\b(?:nobody|whoever|somebody|anybody)\b|\b(?:is|are|was|were) told\b/i

test('comments and messages name the actor', async () => {
  const found: string[] = []
  for await (const path of new Glob('**/*.{ts,tsx}').scan(ROOT)) {
    const lines = (await Bun.file(`${ROOT}/${path}`).text()).split('\n')
    for (const [index, line] of lines.entries()) if (vague.test(line)) found.push(`${path}:${index + 1}`)
  }
  expect(found).toEqual([])
})

/** README.md, ARCHITECTURE.md and their like, and all of docs/. */
const pages = ['*.md', 'docs/**/*.md'].flatMap(pattern => [...new Glob(pattern).scanSync(`${ROOT}/..`)])

test('the documentation names the actor, too', async () => {
  const found: string[] = []
  for (const page of pages) {
    if (page === 'CHANGELOG.md') continue
    const lines = (await Bun.file(`${ROOT}/../${page}`).text()).split('\n')
    for (const [index, line] of lines.entries()) if (vague.test(line)) found.push(`${page}:${index + 1}`)
  }
  expect(found).toEqual([])
})

test('the nouns of ARCHITECTURE.md are few enough to learn', async () => {
  const text = await Bun.file(`${ROOT}/../ARCHITECTURE.md`).text()
  const rows =
    text
      .split('\n## Nouns\n')[1]
      ?.split('\n## ')[0]
      ?.match(/^\| (?!word|-)[a-z].*$/gm) ?? []
  expect(rows.length).toBeGreaterThan(20)
  expect(rows.length).toBeLessThanOrEqual(40)
})
