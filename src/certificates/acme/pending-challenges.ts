// The server's own responses to checks: HTTP-01 on port 80, TLS-ALPN-01 on port 443. The authority may ask any server
// of a cluster.

import { createHash } from 'node:crypto'
import type { Certificate, ChallengeResponses } from '../../certificates.ts'
import { objectId, octetString, sequence, TRUE } from '../../x509/der.ts'
import { selfSigned } from '../../x509/self-signed.ts'
import type { Clock } from '../clock.ts'
import type { Challenge, Solver } from './solver.ts'

/** The data that all servers of a cluster have in memory. */
interface Shared {
  get(key: string): string | undefined
  put(key: string, text: string, untilMs: number): Promise<void>
  remove(key: string): void
}

/** The milliseconds after which the cluster forgets a challenge response, in case its server was killed. Checks take minutes. */
const SHARED_MS = 3_600_000

/** The responses: one for each name of an order in progress, whose number the issuer limits. */
export class PendingChallenges implements ChallengeResponses {
  readonly #answers = new Map<string, string>()
  readonly #certificates = new Map<string, Certificate>()
  readonly #clock: Clock
  readonly #shared: () => Shared | undefined

  readonly http: Solver
  readonly tls: Solver

  /** Makes the collection. `shared` returns `undefined` if the server is alone. */
  constructor(clock: Clock, shared: () => Shared | undefined = () => undefined) {
    this.#clock = clock
    this.#shared = shared
    const answers = this.#answers
    const certificates = this.#certificates
    this.http = {
      type: 'http-01',
      present: async challenges => {
        for (const { token, keyAuthorization } of challenges) answers.set(token, keyAuthorization)
        await this.#share(challenges, httpKey)
      },
      withdraw: async challenges => {
        for (const { token } of challenges) answers.delete(token)
        this.#unshare(challenges, httpKey)
      },
    }
    this.tls = {
      type: 'tls-alpn-01',
      present: async challenges => {
        for (const { name, keyAuthorization } of challenges)
          certificates.set(name, challengeCertificate(name, keyAuthorization, clock.now()))
        await this.#share(challenges, tlsKey)
      },
      withdraw: async challenges => {
        for (const { name } of challenges) certificates.delete(name)
        this.#unshare(challenges, tlsKey)
      },
    }
  }

  httpAnswer(token: string): string | undefined {
    return this.#answers.get(token) ?? this.#shared()?.get(`http ${token}`)
  }

  tlsCertificate(name: string): Certificate | undefined {
    const lower = name.toLowerCase()
    const own = this.#certificates.get(lower)
    if (own !== undefined) return own
    const keyAuthorization = this.#shared()?.get(`tls ${lower}`)
    return keyAuthorization === undefined
      ? undefined
      : challengeCertificate(lower, keyAuthorization, this.#clock.now())
  }

  async #share(challenges: readonly Challenge[], keyOf: (challenge: Challenge) => string): Promise<void> {
    const shared = this.#shared()
    if (shared === undefined) return
    const untilMs = this.#clock.now() + SHARED_MS
    await Promise.all(challenges.map(one => shared.put(keyOf(one), one.keyAuthorization, untilMs)))
  }

  #unshare(challenges: readonly Challenge[], keyOf: (challenge: Challenge) => string): void {
    for (const one of challenges) this.#shared()?.remove(keyOf(one))
  }
}

const httpKey = ({ token }: Challenge): string => `http ${token}`
const tlsKey = ({ name }: Challenge): string => `tls ${name}`

const ACME_IDENTIFIER = objectId('1.3.6.1.5.5.7.1.31')

/** Makes the certificate. `keyAuthorization`: the token and the thumbprint of the account's key, with a dot between them. */
export function challengeCertificate(name: string, keyAuthorization: string, nowMs: number): Certificate {
  const proof = octetString(createHash('sha256').update(keyAuthorization).digest())
  return selfSigned(name, nowMs, sequence(ACME_IDENTIFIER, TRUE, octetString(proof)))
}
