// Which authorities verify a certificate: the runtime's, the system's, and one that is named. A program of its own each time,
// because they are read once.

import { afterAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'

const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
afterAll(() => rm(folder, { recursive: true }))
const authority = await makeCertificate(['authority'])
const own = await makeCertificate(['localhost'], authority)
const ca = join(folder, 'ca.pem')
await Bun.write(ca, authority.cert)
const other = join(folder, 'other.pem')
await Bun.write(other, (await makeCertificate(['another authority'])).cert)

await Bun.write(
  join(folder, 'dial.ts'),
  `import { readFileSync } from 'node:fs'
  import { dial } from ${JSON.stringify(join(import.meta.dir, '../../src/sockets/dial.ts'))}
  const deaf = { received() {}, drained() {}, ended() {}, closed() {} }
  const [port, ca] = process.argv.slice(2)
  const tls = ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }
  try {
    await dial({ host: 'localhost', port: Number(port), tls }, deaf)
    console.log('up')
  } catch (error) {
    console.log(error.code)
  }
  process.exit()`,
)
const built = await Bun.build({ entrypoints: [join(folder, 'dial.ts')], target: 'node', outdir: folder })
if (!built.success) throw new Error(built.logs.map(String).join('\n'))
const program = join(folder, 'dial.mjs')
await Bun.write(program, Bun.file(join(folder, 'dial.js')))

const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: own, fetch: () => new Response('hi') })
afterAll(() => server.stop(true))

/** Nothing of this machine's own settings. */
async function dialled(
  runtime: string,
  variables: Readonly<Record<string, string>>,
  ...args: readonly string[]
) {
  const set = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
  const clean = ['env', '-i', `PATH=${process.env.PATH}`, `HOME=${folder}`, ...set]
  return (await run([...clean, runtime, program, `${server.port}`, ...args])).out.trim()
}

for (const runtime of ['bun', 'node'])
  describeWith([runtime], `${runtime}:`, () => {
    test('an authority that nobody knows is not trusted, one that is named is', async () => {
      expect(await dialled(runtime, {})).toMatch(/UNABLE_TO_/)
      expect(await dialled(runtime, {}, ca)).toBe('up')
    })

    test.each(['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'])(
      '%s names one, also beside another',
      async variable => {
        expect(await dialled(runtime, { [variable]: ca })).toBe('up')
        expect(await dialled(runtime, { [variable]: ca }, other)).toBe('up')
        expect(await dialled(runtime, { [variable]: other })).toMatch(/UNABLE_TO_/)
        expect(await dialled(runtime, { [variable]: join(folder, 'missing.pem') })).toMatch(/UNABLE_TO_/)
      },
    )

    test('SSL_CERT_DIR names a folder of them', async () => {
      const certificates = join(folder, `certificates-${runtime}`)
      await Bun.write(join(certificates, 'company.pem'), authority.cert)
      const hash = (await run(['openssl', 'x509', '-in', ca, '-noout', '-hash'])).out.trim()
      await Bun.write(join(certificates, `${hash}.0`), authority.cert)
      expect(await dialled(runtime, { SSL_CERT_DIR: certificates })).toBe('up')
    })
  })

const STORE = '/etc/ssl/certs/ca-certificates.crt'

// With the authority in it, for this one program: as a company puts it there.
testWith(
  ['unshare', 'node'],
  "the system's own store counts, for fetch in the launched program too",
  async () => {
    const bundle = join(folder, 'bundle.crt')
    await Bun.write(bundle, `${await Bun.file(STORE).text()}\n${authority.cert}`)
    const inside = async (command: string) => {
      const script = `mount --bind ${bundle} ${STORE} && exec env -i PATH=$PATH HOME=${folder} ${command}`
      const { out, err } = await run(['unshare', '-rm', 'sh', '-c', script])
      return out.trim() || err
    }
    for (const runtime of ['bun', 'node'])
      expect(await inside(`${runtime} ${program} ${server.port}`)).toBe('up')
    const launcher = join(import.meta.dir, '../../bin/localtunnels.ts')
    const said = await inside(`sh ${launcher} doctor --server https://localhost:${server.port}`)
    expect(said).toContain('but not as a tunnel server')
    // What providers and issuers are asked with.
    const [, options = ''] = /exec bun ([^"]*) "\$0"/.exec(await Bun.file(launcher).text()) ?? []
    const asked = join(folder, 'asked.ts')
    await Bun.write(asked, `console.log(await (await fetch('https://localhost:${server.port}')).text())`)
    expect(await inside(`bun ${options} ${asked}`)).toBe('hi')
  },
)
