// Knot, a real authoritative name server on loopback. All names of its zones lead to 127.0.0.1; a key may change TXT.

import { randomBytes } from 'node:crypto'
import { freePort } from './ports.ts'
import { folder, run, startProgram } from './programs.ts'

export interface NameServer extends AsyncDisposable {
  /** `127.0.0.1:port`, UDP and TCP. */
  readonly address: string
  readonly port: number
  readonly keyName: string
  /** base64, for hmac-sha256. */
  readonly secret: string
  /** The texts of a name, as the server answers them now. */
  texts(name: string): Promise<readonly string[]>
}

/** `records`: lines of a zone file, by zone, besides those that every zone has. */
export async function startNameServer(zones: Readonly<Record<string, string>>): Promise<NameServer> {
  const dir = await folder('knot')
  const port = freePort()
  const secret = randomBytes(32).toString('base64')
  const keyName = 'localtunnels-key'
  const sections = Object.keys(zones).map(
    zone => `  - domain: ${zone}\n    file: ${zone}zone\n    acl: change\n    zonefile-sync: -1`,
  )
  for (const [zone, records] of Object.entries(zones)) {
    const common = `$ORIGIN ${zone}\n$TTL 1\n@ SOA ns hostmaster 1 3600 600 86400 1\n@ NS ns\nns A 127.0.0.1\n`
    await Bun.write(`${dir.path}/${zone}zone`, `${common}@ A 127.0.0.1\n* A 127.0.0.1\n${records}\n`)
  }
  await Bun.write(
    `${dir.path}/knot.conf`,
    `server:
  rundir: ${dir.path}
  listen: 127.0.0.1@${port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: ${dir.path}
key:
  - id: ${keyName}
    algorithm: hmac-sha256
    secret: ${secret}
acl:
  - id: change
    key: ${keyName}
    action: update
    update-type: [TXT]
template:
  - id: default
    storage: ${dir.path}
zone:
${sections.join('\n')}
`,
  )
  const program = await startProgram(['knotd', '-c', `${dir.path}/knot.conf`], port)
  return {
    address: `127.0.0.1:${port}`,
    port,
    keyName,
    secret,
    async texts(name) {
      const { out } = await run(['dig', '+short', '-p', `${port}`, '@127.0.0.1', 'TXT', name])
      return out
        .split('\n')
        .filter(Boolean)
        .map(line => line.replaceAll('"', ''))
        .sort()
    },
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}
