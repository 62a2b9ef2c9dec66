// Checks that the server answers itself: HTTP-01 on port 80, TLS-ALPN-01 on port 443.

import type { Certificate, ChallengeAnswers } from '../../certificates.ts'
import type { Clock } from '../clock.ts'
import { challengeCertificate } from './challenge-certificate.ts'
import type { Solver } from './solver.ts'

/** Holds as many as orders under way have names: the issuer bounds them. */
export class PendingChallenges implements ChallengeAnswers {
  readonly #answers = new Map<string, string>()
  readonly #certificates = new Map<string, Certificate>()

  readonly http: Solver
  readonly tls: Solver

  constructor(clock: Clock) {
    const answers = this.#answers
    const certificates = this.#certificates
    this.http = {
      type: 'http-01',
      async present(challenges) {
        for (const { token, keyAuthorization } of challenges) answers.set(token, keyAuthorization)
      },
      async withdraw(challenges) {
        for (const { token } of challenges) answers.delete(token)
      },
    }
    this.tls = {
      type: 'tls-alpn-01',
      async present(challenges) {
        for (const { name, keyAuthorization } of challenges)
          certificates.set(name, challengeCertificate(name, keyAuthorization, clock.now()))
      },
      async withdraw(challenges) {
        for (const { name } of challenges) certificates.delete(name)
      },
    }
  }

  httpAnswer(token: string): string | undefined {
    return this.#answers.get(token)
  }

  tlsCertificate(name: string): Certificate | undefined {
    return this.#certificates.get(name.toLowerCase())
  }
}
