// Builds what the package runs: each entry of package.json, the command line and the program of the threads, as modules that
// share their parts. A start then resolves a few files instead of 150, and no part is in the package twice.
//
//   bun tools/bundle.ts            behind tsc, which writes the declarations, as `bun run build` does
//   bun tools/bundle.ts FOLDER     without declarations, into that folder

import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { inputTypes } from './config-types.ts'
import { builtPages } from './pages.ts'
import { withPageUrls } from './repository.ts'

const root = resolve(import.meta.dir, '..')
const into = process.argv[2]
const dist = resolve(root, into ?? 'dist')
/** Outside of the repository, whose biome.json leaves `dist` out. */
const made = mkdtempSync(join(tmpdir(), 'localtunnels-dist-'))
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
  outdir: made,
  naming: { entry: '[dir]/[name].[ext]', chunk: PARTS },
  target: 'node',
  format: 'esm',
  splitting: true,
  sourcemap: 'external',
  external: [
    'bun',
    'bun:*',
    ...Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }).filter(
      name => !NEEDED.has(name),
    ),
  ],
  // Nothing is minified: users of a tunnel read what they run, and a report of an error shows its lines.
  metafile: true,
  throw: false,
  plugins: [
    pages,
    {
      name: 'own-urls',
      setup(build) {
        // A module finds files next to it from its place among the sources. `finish` knows where its code is in the end.
        build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
          const text = withPageUrls(readFileSync(path, 'utf8'))
          const place = relative(join(root, 'src'), path).replace(/\.ts$/, '.js')
          const url = `new URL('own-place:${place}', import.meta.url).href`
          return { contents: text.replaceAll('import.meta.url', `(${url})`), loader: 'ts' }
        })
      },
    },
  ],
})
for (const log of built.logs) console.error(log.message)
if (!built.success) process.exit(1)

const modules = built.outputs.filter(({ kind }) => kind !== 'sourcemap')
const bytes = modules.reduce((sum, { size }) => sum + size, 0)
keepClientAlone()
const unformatted = finish()
format()
restoreFirstLines()
writeMaps()
const declarations = into === undefined ? dropDeclarations() : 0
console.log(`${modules.length} modules, ${(bytes / 1e3).toFixed(0)} kB; ${declarations} declarations`)

function sourceOf(output: string): string {
  return output.replace('./dist/', '').replace(/\.js$/, '.ts')
}

/** What imports the client alone loads no code of the server. */
function keepClientAlone(): void {
  const outputs = built.metafile?.outputs ?? {}
  const byPath = new Map(Object.entries(outputs).map(([path, output]) => [resolve(made, path), output]))
  const reached = new Set([join(made, 'src/client.js')])
  for (const path of reached) {
    const output = byPath.get(path)
    if (output === undefined) throw new Error(`no output ${path}`)
    const foreign = Object.keys(output.inputs).find(input => /\bsrc\/(?:server|cli)\//.test(input))
    if (foreign !== undefined) throw new Error(`src/client.ts loads ${foreign}`)
    for (const { path: part, kind } of output.imports)
      if (kind === 'import-statement' && byPath.has(resolve(made, part))) reached.add(resolve(made, part))
  }
}

/** Names the parts after what is in them, and writes the place of each module into the code that asks for it. */
function finish(): ReadonlyMap<string, Unformatted> {
  const unformatted = new Map<string, Unformatted>()
  const texts = new Map(modules.map(({ path }) => [path, readFileSync(path, 'utf8')]))
  const names = partNames()
  const plain = plainNames([...texts.values()])
  for (const [path, text] of texts) {
    const finished = text
      .replace(/^#!.*\n/, '')
      .replace(/[\w.-]+-[0-9a-z]{8}\.js/g, name => names.get(name) ?? name)
      .replace(
        /own-place:([\w./-]+)/g,
        (_, place) => `./${relative(dirname(path), join(made, 'src', place))}`,
      )
      .replace(/\b(\w+)2\b/g, (name, bare) => (plain.has(bare) ? bare : name))
    rmSync(path)
    const map = JSON.parse(readFileSync(`${path}.map`, 'utf8'))
    rmSync(`${path}.map`)
    // Bun compiles a file with this first line as it is, without a pass of its own, and reads it as Latin-1.
    const ascii = finished.replace(
      /[^\0-\x7f]/g,
      one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    const file = join(dirname(path), names.get(basename(path)) ?? basename(path))
    writeFileSync(file, `// @bun\n${ascii}`)
    unformatted.set(relative(made, file), { text: ascii, map, firstLine: text.startsWith('#!') ? 1 : 0 })
  }
  return unformatted
}

/** File names of the parts: the largest module in each gives it its name, `http-head.js`. */
function partNames(): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  const taken = new Set(
    built.outputs.filter(({ kind }) => kind !== 'chunk').map(({ path }) => basename(path)),
  )
  // The code of a module that is also loaded late comes before the few lines that load it.
  const outputs = Object.entries(built.metafile?.outputs ?? {}).sort(
    ([, one], [, other]) => other.bytes - one.bytes,
  )
  for (const [path, { inputs, entryPoint }] of outputs) {
    const part = basename(path)
    if (taken.has(part)) continue
    const [largest] = Object.entries(inputs).sort(
      ([, one], [, other]) => other.bytesInOutput - one.bytesInOutput,
    )
    const source = entryPoint ?? largest?.[0] ?? 'runtime'
    const name = source
      .replace(/^.*node_modules\/(?:@[^/]+\/)?([^/]+)\/.*|^(?:.*:)?(?:src\/)?/, '$1')
      .replace(/\.[jt]s$/, '')
    let file = `${name.replaceAll('/', '-')}.js`
    for (let more = 2; taken.has(file); more++) file = `${name.replaceAll('/', '-')}-${more}.js`
    taken.add(file)
    names.set(part, file)
  }
  return names
}

/**
 * Bun calls a class that an entry exports `TunnelError2` in its part, and a report of an error would name it so. It gets its own
 * name where nothing else has it. Names of functions stay: those of variables within functions could be the same.
 */
function plainNames(texts: readonly string[]): ReadonlySet<string> {
  const all = texts.join('\n')
  const exported = new Set([...all.matchAll(/^ {2}([A-Z]\w*)2 as \1,?$/gm)].map(([, name = '']) => name))
  for (const [, declared, listed] of all.matchAll(/\b(?:function|class|var|let|const) (\w+)|^ {2}(\w+),?$/gm))
    exported.delete(declared ?? listed ?? '')
  return exported
}

/** Formats the code as the sources are, and puts it into its place: Bun writes lines of 900 characters. */
function format(): void {
  const { formatter, javascript } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
  writeFileSync(join(made, 'biome.json'), JSON.stringify({ formatter, javascript }))
  const biome = join(root, 'node_modules/.bin/biome')
  const { exitCode, stderr } = Bun.spawnSync([biome, 'format', '--write', '.'], { cwd: made })
  if (exitCode !== 0) throw new Error(String(stderr))
  rmSync(join(made, 'biome.json'))
  cpSync(made, dist, { recursive: true })
  rmSync(made, { recursive: true })
}

/** The code before it is formatted; the map is that of the bundler, which begins `firstLine` lines above. */
interface Unformatted {
  readonly text: string
  readonly map: ConstructorParameters<typeof SourceMap>[0]
  readonly firstLine: number
}

/** Writes a map of lines for each module: `node --enable-source-maps` then names the lines of the sources. */
function writeMaps(): void {
  for (const [file, { text, map, firstLine }] of unformatted) {
    const path = join(dist, file)
    const formatted = readFileSync(path, 'utf8')
    const lookup = new SourceMap(map)
    // Formatting moves words between lines, and changes none.
    const words = wordsOf(text)
    const sources: string[] = []
    const lines: string[] = []
    let [next, lastSource, lastLine] = [0, 0, 0]
    for (const [index, line] of formatted.split('\n').entries()) {
      lines.push('')
      const own =
        index < formatted.slice(0, formatted.indexOf('// @bun')).split('\n').length ? [] : wordsOf(line)
      if (own.length === 0) continue
      const at = words.slice(next, next + 50).findIndex(({ word }) => word === own[0]!.word)
      if (at < 0) continue
      const { line: from, column } = words[next + at]!
      next += at + own.length
      const entry = lookup.findEntry(from + firstLine, column)
      if (!('originalSource' in entry)) continue
      const name = relative(dirname(path), resolve(made, entry.originalSource))
      if (!sources.includes(name)) sources.push(name)
      const source = sources.indexOf(name)
      lines[index] = [0, source - lastSource, entry.originalLine - lastLine, 0].map(vlq).join('')
      ;[lastSource, lastLine] = [source, entry.originalLine]
    }
    writeFileSync(
      `${path}.map`,
      JSON.stringify({ version: 3, sources, names: [], mappings: lines.join(';') }),
    )
    writeFileSync(path, `${formatted}//# sourceMappingURL=${basename(path)}.map\n`)
  }
}

function wordsOf(
  text: string,
): readonly { readonly word: string; readonly line: number; readonly column: number }[] {
  return text
    .split('\n')
    .flatMap((one, line) =>
      [...one.matchAll(/[\w$]+/g)].map(({ 0: word, index: column }) => ({ word, line, column })),
    )
}

/** A number in the digits of a source map. */
function vlq(value: number): string {
  const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  let digits = ''
  do {
    digits += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)]
    rest >>>= 5
  } while (rest > 0)
  return digits
}

/** The bin begins with a program of sh, which is nothing to a bundler. */
function restoreFirstLines(): void {
  const path = join(dist, BIN.replace(/\.ts$/, '.js'))
  const head = readFileSync(join(root, BIN), 'utf8').split('\n\n', 1)[0]
  const body = readFileSync(path, 'utf8')
  writeFileSync(path, `${head}\n${body}`)
  chmodSync(path, 0o755)
}

/** Keeps the declarations that the package's entries name, each by way of others; answers how many. Those of files get comments. */
function dropDeclarations(): number {
  writeFileSync(join(dist, 'src/config/input.d.ts'), inputTypes())
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
