// Builds what the package runs: each entry of package.json, the command line and the program of the threads, as modules that
// share their parts. A start then resolves a few files instead of 150, and no part is in the package twice.
//
//   bun tools/bundle.ts            behind tsc, which writes the declarations, as `bun run build` does
//   bun tools/bundle.ts FOLDER     without declarations, into that folder

import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { builtPages } from './pages.ts'
import { withPageUrls } from './repository.ts'

const root = resolve(import.meta.dir, '..')
const into = process.argv[2]
const dist = resolve(root, into ?? 'dist')
const BIN = 'bin/localtunnels.ts'
/** Parts are one folder below `dist`, as deep as the entries: what a file says of its own place holds in each of them. */
const PARTS = 'src/[name]-[hash].[ext]'

/** What every start needs is in the parts: to look for a package on the disk costs a start up to 10 ms. */
const NEEDED = new Set(['commander', 'picocolors'])

const { dependencies, peerDependencies, optionalDependencies, exports } = await Bun.file(
  join(root, 'package.json'),
).json()
const entries = Object.values<{ readonly default?: string }>(exports).flatMap(entry =>
  entry.default === undefined ? [] : [sourceOf(entry.default)],
)

const pages = await builtPages()
const built = await Bun.build({
  entrypoints: [...entries, BIN, 'src/accelerator/thread.ts'].map(path => join(root, path)),
  root,
  outdir: dist,
  naming: { entry: '[dir]/[name].[ext]', chunk: PARTS },
  target: 'node',
  format: 'esm',
  splitting: true,
  external: [
    'bun',
    'bun:*',
    ...Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }).filter(
      name => !NEEDED.has(name),
    ),
  ],
  // Names of functions and classes stay: a user's report of an error names them.
  minify: { whitespace: true, syntax: true, identifiers: true, keepNames: true },
  metafile: true,
  throw: false,
  plugins: [
    pages,
    {
      name: 'own-urls',
      setup(build) {
        // A module finds files beside it from where it is among the sources: its part lies in `dist/src`.
        build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
          const text = withPageUrls(readFileSync(path, 'utf8'))
          const place = relative(join(root, 'src'), path).replace(/\.ts$/, '.js')
          const url = `new URL('./${place}', import.meta.url).href`
          return { contents: text.replaceAll('import.meta.url', `(${url})`), loader: 'ts' }
        })
      },
    },
  ],
})
for (const log of built.logs) console.error(log.message)
if (!built.success) process.exit(1)

const bytes = built.outputs.reduce((sum, { size }) => sum + size, 0)
keepClientAlone()
shortenNames()
restoreFirstLines()
const declarations = into === undefined ? dropDeclarations() : 0
console.log(`${built.outputs.length} modules, ${(bytes / 1e3).toFixed(0)} kB; ${declarations} declarations`)

function sourceOf(output: string): string {
  return output.replace('./dist/', '').replace(/\.js$/, '.ts')
}

/** What imports the client alone loads no code of the server. */
function keepClientAlone(): void {
  const outputs = built.metafile?.outputs ?? {}
  const byPath = new Map(Object.entries(outputs).map(([path, output]) => [resolve(dist, path), output]))
  const reached = new Set([join(dist, 'src/client.js')])
  for (const path of reached) {
    const output = byPath.get(path)
    if (output === undefined) throw new Error(`no output ${path}`)
    const foreign = Object.keys(output.inputs).find(input => /\bsrc\/(?:server|cli)\//.test(input))
    if (foreign !== undefined) throw new Error(`src/client.ts loads ${foreign}`)
    for (const { path: part, kind } of output.imports)
      if (kind === 'import-statement' && byPath.has(resolve(dist, part))) reached.add(resolve(dist, part))
  }
}

/** Parts are numbered: a hash cannot be compressed, and parts name each other a thousand times. */
function shortenNames(): void {
  const parts = built.outputs.filter(({ kind }) => kind === 'chunk').map(({ path }) => path)
  const numbered = new Map(
    parts.sort().map((path, number) => [basename(path), `${number.toString(36)}.js`] as const),
  )
  for (const { path } of built.outputs) {
    const text = readFileSync(path, 'utf8')
    writeFileSync(
      path,
      text
        .replace(/[\w.-]+-[0-9a-z]{8}\.js/g, name => numbered.get(name) ?? name)
        // Node shows the whole line of an error that nobody catches, and other lines have 14 kB and more.
        .replace(/if\(typeof Bun>"u"\)throw [^;]+;/g, '\n$&\n'),
    )
  }
  for (const path of parts) renameSync(path, join(dirname(path), numbered.get(basename(path)) ?? ''))
}

/** The bin begins with a program of sh, which is nothing to a bundler. */
function restoreFirstLines(): void {
  const path = join(dist, BIN.replace(/\.ts$/, '.js'))
  const head = readFileSync(join(root, BIN), 'utf8').split('\n\n', 1)[0]
  const body = readFileSync(path, 'utf8').replace(/^#!.*\n/, '')
  writeFileSync(path, `${head}\n${body}`, { mode: 0o755 })
}

/** Keeps the declarations that the package's entries name, each by way of others; answers how many. */
function dropDeclarations(): number {
  const kept = new Set(entries.map(path => join(dist, path.replace(/\.ts$/, '.d.ts'))))
  const exported = new Set(kept)
  for (const path of kept)
    for (const [line, name = ''] of readFileSync(path, 'utf8').matchAll(
      /^.*(?:from |import\()'(\.[^']+)'/gm,
    )) {
      const next = resolve(dirname(path), name.replace(/\.[jt]s$/, '.d.ts'))
      if (!existsSync(next)) continue
      kept.add(next)
      if (exported.has(path) && line.startsWith('export ')) exported.add(next)
    }
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const path = join(dist, name)
    if (path.endsWith('.d.ts') && !kept.has(path)) rmSync(path)
  }
  for (const path of kept) {
    if (!exported.has(path) && !path.endsWith('/options.d.ts')) dropComments(path)
    // An editor shows a declaration in its own way.
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^ +(?!\*)/gm, ''))
  }
  return kept.size
}

/** Of declarations that no entry exports, and that are no options, the text is in the sources: the types are enough. */
function dropComments(path: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, ''))
}
