// Pebble, the authority that Let's Encrypt made for tests: strict, and refusing one nonce in five.

import { makeCertificate } from './certificates.ts'
import { freePort } from './ports.ts'
import { folder, startProgram } from './programs.ts'

export interface PebbleOptions {
  /** `ip:port` of the name server that it asks. */
  readonly dns?: string
  /** Where it looks for HTTP-01 and TLS-ALPN-01 answers. */
  readonly httpPort?: number
  readonly tlsPort?: number
  /** Key ids and base64url keys; with them it takes no other accounts. */
  readonly externalAccounts?: Readonly<Record<string, string>>
  /** Percent of requests. Default 20. */
  readonly badNonces?: number
  /** Of certificates. Default 90 days. */
  readonly validitySeconds?: number
  /** To start it again where it was; it has forgotten everything then. */
  readonly port?: number
  readonly identity?: { readonly cert: string; readonly key: string }
}

export interface Pebble extends AsyncDisposable {
  readonly directory: string
  /** The root of its own server certificate. */
  readonly ca: string
  readonly identity: { readonly cert: string; readonly key: string }
  readonly port: number
  /** Its other port, for what an operator may do. */
  manage(path: string, body?: string): Promise<Response>
}

export async function startPebble(options: PebbleOptions = {}): Promise<Pebble> {
  const dir = await folder('pebble')
  const { port = freePort(), identity = await makeCertificate(['localhost']) } = options
  const managementPort = freePort()
  await Bun.write(`${dir.path}/cert.pem`, identity.cert)
  await Bun.write(`${dir.path}/key.pem`, identity.key)
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: `${dir.path}/cert.pem`,
    privateKey: `${dir.path}/key.pem`,
    httpPort: options.httpPort ?? freePort(),
    tlsPort: options.tlsPort ?? freePort(),
    externalAccountBindingRequired: options.externalAccounts !== undefined,
    externalAccountMACKeys: options.externalAccounts ?? {},
    retryAfter: { authz: 0, order: 0 },
    keyAlgorithm: 'ecdsa',
    profiles: { default: { description: 'any', validityPeriod: options.validitySeconds ?? 7_776_000 } },
  }
  await Bun.write(`${dir.path}/config.json`, JSON.stringify({ pebble }))
  const command = ['pebble', '-config', `${dir.path}/config.json`, '-strict']
  if (options.dns !== undefined) command.push('-dnsserver', options.dns)
  const program = await startProgram(command, port, {
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_WFE_NONCEREJECT: `${options.badNonces ?? 20}`,
  })
  return {
    directory: `https://localhost:${port}/dir`,
    ca: identity.cert,
    identity,
    port,
    manage: (path, body) =>
      fetch(`https://localhost:${managementPort}${path}`, {
        ...(body !== undefined && { method: 'POST', body }),
        tls: { ca: identity.cert },
      }),
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}
