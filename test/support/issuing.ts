// An issuer with its store and its answers to HTTP-01, in this process or as a program that tests can kill.

import { AcmeAuthority } from '../../src/certificates/acme/authority.ts'
import { PendingChallenges } from '../../src/certificates/acme/pending-challenges.ts'
import { type Clock, systemClock } from '../../src/certificates/clock.ts'
import { Issuer, type IssuerEvents } from '../../src/certificates/issuer.ts'
import { HTTP_CHALLENGE_PATH } from '../../src/certificates.ts'
import { SqliteCertificates } from '../../src/stores/sqlite-certificates.ts'
import { deferred } from './within.ts'

export interface IssuingOptions {
  readonly directory: string
  readonly ca: string
  /** Of the SQLite file. */
  readonly path: string
  readonly httpPort: number
  readonly name: string
  /** Names that may have one on demand. */
  readonly allowed?: readonly string[]
  /** Of the issuer; the authority always has the real one. */
  readonly clock?: Clock
  readonly orderTimeoutMs?: number
}

export interface Issuing extends AsyncDisposable {
  readonly issuer: Issuer
  readonly store: SqliteCertificates
  readonly issued: Promise<IssuerEvents['issued']>
  readonly failed: Promise<IssuerEvents['failed']>
}

export async function startIssuing(options: IssuingOptions): Promise<Issuing> {
  const { directory, ca, path, httpPort, name, allowed = [], clock = systemClock, orderTimeoutMs } = options
  const pending = new PendingChallenges(systemClock)
  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: httpPort,
    fetch({ url }) {
      const answer = pending.httpAnswer(new URL(url).pathname.slice(HTTP_CHALLENGE_PATH.length))
      return new Response(answer ?? '', { status: answer === undefined ? 404 : 200 })
    },
  })
  const store = new SqliteCertificates(path, directory)
  const authority = new AcmeAuthority({
    directory,
    ca,
    store,
    clock: systemClock,
    solverFor: () => pending.http,
    ...(orderTimeoutMs !== undefined && { orderTimeoutMs }),
  })
  const isAllowed = (asked: string) => allowed.includes(asked)
  const issuer = new Issuer({ authority, store, clock, always: [[name]], isAllowed, holder: 'this server' })
  const issued = deferred<IssuerEvents['issued']>()
  const failed = deferred<IssuerEvents['failed']>()
  issuer.on('issued', issued.resolve)
  issuer.on('failed', failed.resolve)
  await issuer.start()
  return {
    issuer,
    store,
    issued: issued.promise,
    failed: failed.promise,
    async [Symbol.asyncDispose]() {
      await issuer.stop()
      await store.close()
      await http.stop(true)
    },
  }
}

if (import.meta.main) {
  // What the test wrote there.
  const options = JSON.parse(process.argv[2]!) as IssuingOptions
  await (await startIssuing(options)).issued
  process.exit(0)
}
