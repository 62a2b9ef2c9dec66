// Requests to an authority (RFC 8555 section 6): its directory, nonces, signed requests. Every failure is a TunnelError.

import { messageOf, optionInvalid, TunnelError } from '../../errors.ts'
import { type BoundedAnswer, boundedRequest, retryAfterMs } from '../bounded-request.ts'
import type { Clock } from '../clock.ts'
import type { AccountKey } from './jws.ts'
import { AcmeProblem, codeOf, type ProblemDocument } from './problem.ts'

/** The address of an authority. */
export interface AcmeServer {
  /** The URL of its directory, `https:` only. */
  readonly directory: string
  /** The PEM text of the roots that sign its own certificate, for a private authority. Default: those of the system. */
  readonly ca?: string | undefined
  /** The time for one request and its response. Default 30,000 ms. If exceeded: `ACME_UNREACHABLE`. */
  readonly timeoutMs?: number
  /** The maximum size of a response. Default 1 MiB, room for a hundred certificate chains; more fails with `ACME_UNREACHABLE`. */
  readonly maxResponseBytes?: number
}

/** The URLs of the directory. `renewalInfo` exists only if the authority knows RFC 9773. */
export interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
  readonly revokeCert: string
  readonly renewalInfo: string | undefined
  readonly isExternalAccountRequired: boolean
}

export interface Answer {
  readonly status: number
  /** The JSON of the response. `undefined` for other types. */
  readonly json: Readonly<Record<string, unknown>> | undefined
  readonly text: string
  readonly location: string | undefined
  readonly retryAfterMs: number | undefined
}

const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_MAX_RESPONSE_BYTES = 1_048_576
/**
 * The maximum number of stored nonces. Each response brings a new one, and a few serve concurrent orders. Authorities
 * let them expire.
 */
const MAX_NONCES = 8
/**
 * The maximum number of attempts, because a nonce may be refused at any time (section 6.5). If an authority refuses
 * one in five, ten refusals in a row have a probability of 10⁻⁷.
 */
const MAX_NONCE_ATTEMPTS = 10

export class AcmeConnection {
  readonly #server: AcmeServer
  readonly #clock: Clock
  readonly #nonces: string[] = []
  #directory: Promise<Directory> | undefined

  constructor(server: AcmeServer, clock: Clock) {
    const { directory } = server
    if (URL.parse(directory)?.protocol !== 'https:')
      throw optionInvalid(`The directory of a certificate authority is an https:// URL, not ${directory}.`)
    this.#server = server
    this.#clock = clock
  }

  /** Returns the directory. Reads it once, and again after a failure. */
  directory(): Promise<Directory> {
    this.#directory ??= this.#readDirectory().catch(error => {
      this.#directory = undefined
      throw error
    })
    return this.#directory
  }

  /** Sends an unsigned request: for the directory and renewal information. */
  async get(url: string, what: string, signal?: AbortSignal): Promise<Answer> {
    return this.#judge(await this.#send(url, {}, signal), what)
  }

  /** Sends a signed request. `payload` is `''` for POST-as-GET. `what` is the beginning of a refusal's message. */
  async post(
    url: string,
    payload: unknown,
    key: AccountKey,
    keyId: string | undefined,
    what: string,
    signal?: AbortSignal,
  ): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const nonce = this.#nonces.pop() ?? (await this.#newNonce(signal))
      const headers = { 'content-type': 'application/jose+json' }
      const body = key.sign(url, nonce, payload, keyId)
      try {
        return this.#judge(await this.#send(url, { method: 'POST', headers, body }, signal), what)
      } catch (error) {
        const isBadNonce = error instanceof AcmeProblem && error.type === 'badNonce'
        if (!isBadNonce || attempt === MAX_NONCE_ATTEMPTS) throw error
      }
    }
  }

  async #readDirectory(): Promise<Directory> {
    const { json } = await this.get(this.#server.directory, 'The directory cannot be read')
    const { newNonce, newAccount, newOrder, revokeCert, renewalInfo, meta } = json ?? {}
    if (!isHttps(newNonce) || !isHttps(newAccount) || !isHttps(newOrder) || !isHttps(revokeCert))
      throw new TunnelError('ACME_UNREACHABLE', `${this.#server.directory} is no directory of RFC 8555.`)
    const required = typeof meta === 'object' && meta !== null && 'externalAccountRequired' in meta
    return {
      newNonce,
      newAccount,
      newOrder,
      revokeCert,
      renewalInfo: isHttps(renewalInfo) ? renewalInfo : undefined,
      isExternalAccountRequired: required && meta.externalAccountRequired === true,
    }
  }

  async #newNonce(signal?: AbortSignal): Promise<string> {
    const { newNonce } = await this.directory()
    this.#judge(await this.#send(newNonce, { method: 'HEAD' }, signal), 'No nonce was given')
    const nonce = this.#nonces.pop()
    if (nonce === undefined)
      throw new TunnelError('ACME_UNREACHABLE', `${newNonce} answered without a Replay-Nonce.`)
    return nonce
  }

  async #send(
    url: string,
    request: { method?: string; headers?: Record<string, string>; body?: string },
    signal?: AbortSignal,
  ): Promise<BoundedAnswer> {
    const { ca, timeoutMs = DEFAULT_TIMEOUT_MS, maxResponseBytes = DEFAULT_MAX_RESPONSE_BYTES } = this.#server
    let answer: BoundedAnswer
    try {
      answer = await boundedRequest(url, { ...request, ca, timeoutMs, maxBytes: maxResponseBytes, signal })
    } catch (cause) {
      if (signal?.aborted) throw signal.reason
      throw new TunnelError(
        'ACME_UNREACHABLE',
        `The certificate authority cannot be reached: ${messageOf(cause)}.`,
        {
          cause,
        },
      )
    }
    const nonce = answer.headers.get('replay-nonce')
    if (nonce !== null && /^[\w-]{1,512}$/.test(nonce) && this.#nonces.length < MAX_NONCES)
      this.#nonces.push(nonce)
    return answer
  }

  #judge({ status, headers, text }: BoundedAnswer, what: string): Answer {
    const json = /\bjson\b/.test(headers.get('content-type') ?? '') ? jsonOf(text) : undefined
    const waitMs = retryAfterMs(headers, this.#clock)
    if (status < 200 || status > 299) {
      const problem: ProblemDocument = json ?? {}
      throw new AcmeProblem(codeOf(problem, status), what, problem, status, waitMs)
    }
    return { status, json, text, location: headers.get('location') ?? undefined, retryAfterMs: waitMs }
  }
}

export function isHttps(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 2_048 && URL.parse(value)?.protocol === 'https:'
}

function jsonOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    // An object, as checked above. Its fields are checked when they are used.
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>
  } catch {
    // The body is not JSON, whatever its type says: the response counts as one without fields.
  }
  return undefined
}
