// Builds single executables with Bun inside: no runtime, package manager or network is needed to run them.
//
//   bun tools/binaries.ts [--only linux-x64,linux-arm64-musl] [--to dist/binaries] [--runtime /path/to/bun]
//
// Beside them: SHA256SUMS, and what is inside as a CycloneDX document (sbom.cdx.json). Bun fetches the runtimes of the other
// platforms from the npm registry; --runtime takes the one platform's from a file.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '../src/version.ts'
import { components } from './components.ts'
import { builtPages } from './pages.ts'
import { withPageUrls } from './repository.ts'

const root = resolve(import.meta.dir, '..')

/** By the name that users know: Bun's own name of the platform. `baseline` runs on processors without AVX2. */
const PLATFORMS: Readonly<Record<string, Bun.Build.CompileTarget>> = {
  'linux-x64': 'bun-linux-x64-baseline',
  'linux-arm64': 'bun-linux-arm64',
  'linux-x64-musl': 'bun-linux-x64-baseline-musl',
  'linux-arm64-musl': 'bun-linux-arm64-musl',
  'macos-x64': 'bun-darwin-x64-baseline',
  'macos-arm64': 'bun-darwin-arm64',
  'windows-x64': 'bun-windows-x64-baseline',
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(PLATFORMS).join(',') },
    to: { type: 'string', default: join(root, 'dist/binaries') },
    runtime: { type: 'string' },
  },
})
// Optional in the package, where the bundler passes over one that is missing; in an executable nobody can add it.
for (const name of ['ioredis', 'openid-client', '@opentelemetry/api'])
  if (!existsSync(join(root, 'node_modules', name))) {
    console.error(`error: ${name} is not installed, and would be missing in the executable.`)
    process.exit(2)
  }
const folder = resolve(values.to)
mkdirSync(folder, { recursive: true })

const pages = await builtPages()
const built: string[] = []
for (const platform of values.only.split(',')) {
  const target = PLATFORMS[platform]
  if (target === undefined) {
    console.error(`No platform ${platform}. There are: ${Object.keys(PLATFORMS).join(', ')}.`)
    process.exit(2)
  }
  built.push(await build(platform, target))
}
writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(await components(), null, 2)}\n`)
const sums = [...built, join(folder, 'sbom.cdx.json')].map(file => {
  const sum = new Bun.CryptoHasher('sha256').update(readFileSync(file)).digest('hex')
  // As `sha256sum --check` reads it.
  return `${sum}  ${basename(file)}\n`
})
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))

async function build(platform: string, target: Bun.Build.CompileTarget): Promise<string> {
  const outfile = join(folder, `localtunnels-${platform}${platform.startsWith('windows') ? '.exe' : ''}`)
  const { success, logs } = await Bun.build({
    // The threads run a program of their own: it is found by its path below this root.
    entrypoints: [join(root, 'bin/localtunnels.ts'), join(root, 'src/accelerator/thread.ts')],
    root,
    target: 'bun',
    format: 'esm',
    bytecode: true,
    minify: { whitespace: true, syntax: true },
    throw: false,
    plugins: [
      pages,
      {
        name: 'page-urls',
        setup: build =>
          void build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
            contents: withPageUrls(readFileSync(path, 'utf8')),
            loader: 'ts',
          })),
      },
    ],
    compile: {
      target,
      outfile,
      ...(values.runtime !== undefined && { executablePath: resolve(values.runtime) }),
      // A folder that a user happens to stand in has no say: docs/decisions/030-project-folders.md.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
      // As bin/localtunnels.ts has it: what is fetched is verified by the system's authorities, too.
      execArgv: ['--use-system-ca'],
      ...(platform.startsWith('windows') && {
        windows: {
          title: 'localtunnels',
          version: `${VERSION}.0`,
          description: 'A public URL for a local port',
        },
      }),
    },
  })
  for (const log of logs) console.error(log.message)
  if (!success) process.exit(1)
  console.log(`${platform}: ${(Bun.file(outfile).size / 1e6).toFixed(0)} MB`)
  return outfile
}
