// Builds the command line as one file with bytecode, beside the modules that tsc wrote: Bun then neither resolves nor parses
// 150 files at each start. Node runs the modules.
//
//   bun tools/bundle.ts        behind tsc, as `bun run build` does

import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')
const dist = join(root, 'dist')
/** Where `bin/localtunnels.ts` looks for it. */
const folder = join(dist, 'src/cli')

/** What every start needs. Other packages stay in their own files: a start costs time for every byte of the bundle. */
const NEEDED = ['commander', 'picocolors']
const { dependencies, peerDependencies = {} } = await Bun.file(join(root, 'package.json')).json()
const others = Object.keys({ ...dependencies, ...peerDependencies }).filter(name => !NEEDED.includes(name))

const { success, logs } = await Bun.build({
  entrypoints: [join(dist, 'src/cli/main.js')],
  outdir: folder,
  naming: 'bundle.[ext]',
  target: 'bun',
  external: others,
  // Bytecode of ES modules exists in single executables only.
  format: 'cjs',
  bytecode: true,
  minify: { whitespace: true, syntax: true },
  throw: false,
  plugins: [
    {
      name: 'own-urls',
      setup(build) {
        // A module finds files beside it, such as a thread's program, from where tsc put it. The bin says where that is:
        // what a bundle knows of its own place is that of the machine that built it.
        build.onLoad({ filter: /\/dist\/src\/.*\.js$/ }, ({ path }) => {
          const text = readFileSync(path, 'utf8')
          const place = JSON.stringify(relative(folder, path))
          const url = `new URL(${place}, globalThis[Symbol.for('localtunnels.bundle')]).href`
          return { contents: text.replaceAll('import.meta.url', `(${url})`), loader: 'js' }
        })
      },
    },
  ],
})
for (const log of logs) console.error(log.message)
if (!success) process.exit(1)
console.log(`bundled into ${relative(dirname(dist), folder)}`)
