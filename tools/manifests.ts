// Writes what Homebrew and Scoop install from a release: checksums and addresses of the single executables.
//
//   bun tools/manifests.ts --url https://github.com/OWNER/REPOSITORY/releases/download/v0.1.0 [--from dist/binaries] [--to dist/manifests]
//
// `localtunnels.rb` goes into a tap (`brew install OWNER/tap/localtunnels`), `localtunnels.json` into a bucket of Scoop.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '../src/version.ts'

const root = resolve(import.meta.dir, '..')
const DESCRIPTION = 'Self-hosted tunnel: a public URL for a local port'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    from: { type: 'string', default: join(root, 'dist/binaries') },
    to: { type: 'string', default: join(root, 'dist/manifests') },
  },
})
const { url } = values
if (!/^https:\/\/[^\s"'#]+[^/\s"'#]$/.test(url))
  fail('Say where the files of the release are: --url https://…')
const sums = new Map(
  readFileSync(join(values.from, 'SHA256SUMS'), 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split(/ +/).toReversed() as [string, string]),
)
/** The page of the repository, for an address as GitHub has them. */
const homepage = /^(https:\/\/[^/]+\/[^/]+\/[^/]+)\/releases\//.exec(url)?.[1] ?? url

mkdirSync(values.to, { recursive: true })
writeFileSync(join(values.to, 'localtunnels.rb'), formula())
writeFileSync(join(values.to, 'localtunnels.json'), `${JSON.stringify(scoop(), null, 4)}\n`)

function formula(): string {
  const file = (platform: string) => {
    const { address, sum } = fileOf(`localtunnels-${platform}`)
    return `      url "${address}"\n      sha256 "${sum}"`
  }
  const system = (name: string, platform: string) => `  on_${name} do
    on_arm do
${file(`${platform}-arm64`)}
    end
    on_intel do
${file(`${platform}-x64`)}
    end
  end
`
  return `class Localtunnels < Formula
  desc "${DESCRIPTION}"
  homepage "${homepage}"
  version "${VERSION}"
  license "MIT"

${system('macos', 'macos')}
${system('linux', 'linux')}
  def install
    bin.install Dir["localtunnels-*"].first => "localtunnels"
    bin.install_symlink "localtunnels" => "lt"
    generate_completions_from_executable(bin/"localtunnels", "completions", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/localtunnels --version")
  end
end
`
}

function scoop() {
  const { address, sum } = fileOf('localtunnels-windows-x64.exe')
  return {
    version: VERSION,
    description: DESCRIPTION,
    homepage,
    license: 'MIT',
    architecture: { '64bit': { url: `${address}#/localtunnels.exe`, hash: sum } },
    bin: ['localtunnels.exe', ['localtunnels.exe', 'lt']],
  }
}

function fileOf(name: string): { address: string; sum: string } {
  const sum = sums.get(name)
  if (sum === undefined || !/^[0-9a-f]{64}$/.test(sum)) fail(`SHA256SUMS does not name ${name}.`)
  return { address: `${url}/${name}`, sum }
}

function fail(text: string): never {
  console.error(`error: ${text}`)
  process.exit(2)
}
