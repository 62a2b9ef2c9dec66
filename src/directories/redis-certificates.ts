// Certificates of an ACME authority in Redis or Valkey: the servers of a cluster order each once and share it.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { TunnelError } from '../errors.ts'
import type {
  CertificateStore,
  OrderLimits,
  StoredAccount,
  StoredCertificate,
  StoredOrder,
  StoredRefusal,
} from '../store.ts'
import { type Connection, openRedis, type RedisDirectoryOptions } from './redis.ts'
import { ADMIT, CLAIM, PRUNE, RELEASE, RESCHEDULE } from './redis-certificate-scripts.ts'

export interface RedisCertificatesOptions extends RedisDirectoryOptions {
  /** The URL of the authority's directory: each authority has its own account and certificates. */
  readonly authority: string
  /**
   * The secret with which private keys are encrypted (AES-256-GCM), so that readers of Redis do not have them. The same at all
   * servers. Default: they are there unchanged.
   */
  readonly secret?: string
}

interface Scripts {
  ltReschedule(prefix: string, id: string, times: string, lookAtMs: number): Promise<number>
  ltPrune(prefix: string, beforeMs: number): Promise<number>
  ltAdmit(prefix: string, id: string, nowMs: number, ...limits: number[]): Promise<string>
  ltClaim(prefix: string, id: string, holder: string, nowMs: number, untilMs: number): Promise<number>
  ltRelease(prefix: string, id: string, holder: string): Promise<number>
}

type Times = Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>

export class RedisCertificates implements CertificateStore {
  readonly #redis: Connection & Scripts
  readonly #prefix: string
  readonly #key: Buffer | undefined
  #isClosed = false

  /**
   * Opens the store. Connects at once, and reconnects until it is closed. Throws `OPTION_INVALID` for an invalid URL.
   */
  static async open(options: RedisCertificatesOptions): Promise<RedisCertificates> {
    return new RedisCertificates(await openRedis(options), options)
  }

  private constructor(
    redis: Connection,
    { authority, secret, prefix = 'localtunnels', failed }: RedisCertificatesOptions,
  ) {
    const scripts = { ADMIT, CLAIM, PRUNE, RELEASE, RESCHEDULE }
    for (const [name, lua] of Object.entries(scripts))
      redis.defineCommand(`lt${name[0]}${name.slice(1).toLowerCase()}`, { numberOfKeys: 1, lua })
    // defineCommand has just added them.
    this.#redis = redis as Connection & Scripts
    this.#prefix = `${prefix}:acme:${createHash('sha256').update(authority).digest('hex').slice(0, 16)}:`
    this.#key =
      secret === undefined
        ? undefined
        : createHash('sha256').update(`localtunnels certificates ${secret}`).digest()
    redis.on('error', (error: Error) => failed?.(error))
  }

  account(): Promise<StoredAccount | undefined> {
    return this.#attempt(async () => this.#opened(await this.#redis.get(`${this.#prefix}account`)))
  }

  saveAccount(account: StoredAccount): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.set(`${this.#prefix}account`, this.#sealed(account))
    })
  }

  removeAccount(): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.del(`${this.#prefix}account`)
    })
  }

  certificate(id: string): Promise<StoredCertificate | undefined> {
    return this.#attempt(async () => {
      const [[, text] = [], [, times] = []] =
        (await this.#redis
          .multi()
          .hget(`${this.#prefix}certificates`, id)
          .hget(`${this.#prefix}times`, id)
          .exec()) ?? []
      const certificate = this.#opened<Omit<StoredCertificate, keyof Times>>(text as string | null)
      // Both are written together.
      return certificate && { ...certificate, ...(JSON.parse(times as string) as Times) }
    })
  }

  saveCertificate({ renewAtMs, lookAtMs, window, ...certificate }: StoredCertificate): Promise<void> {
    const { id } = certificate
    return this.#attempt(async () => {
      await this.#redis
        .multi()
        .hset(`${this.#prefix}certificates`, id, this.#sealed(certificate))
        .hset(`${this.#prefix}times`, id, JSON.stringify({ renewAtMs, lookAtMs, window }))
        .zadd(`${this.#prefix}due`, lookAtMs, id)
        .hdel(`${this.#prefix}orders`, id)
        .hdel(`${this.#prefix}refusals`, id)
        .exec()
    })
  }

  reschedule(id: string, { renewAtMs, lookAtMs, window }: Times): Promise<void> {
    return this.#attempt(async () => {
      const times = JSON.stringify({ renewAtMs, lookAtMs, window })
      await this.#redis.ltReschedule(this.#prefix, id, times, lookAtMs)
    })
  }

  removeCertificate(id: string): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis
        .multi()
        .hdel(`${this.#prefix}certificates`, id)
        .hdel(`${this.#prefix}times`, id)
        .zrem(`${this.#prefix}due`, id)
        .exec()
    })
  }

  dueCertificates(nowMs: number, limit: number): Promise<readonly string[]> {
    return this.#attempt(() =>
      this.#redis.zrangebyscore(`${this.#prefix}due`, '-inf', nowMs, 'LIMIT', 0, limit),
    )
  }

  nextLookAtMs(): Promise<number | undefined> {
    return this.#attempt(async () => {
      const due = `${this.#prefix}due`
      const [, lookAtMs] = await this.#redis.zrangebyscore(due, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      return lookAtMs === undefined ? undefined : Number(lookAtMs)
    })
  }

  order(id: string): Promise<StoredOrder | undefined> {
    return this.#attempt(async () => this.#dated(await this.#redis.hget(`${this.#prefix}orders`, id)))
  }

  orders(limit: number): Promise<readonly StoredOrder[]> {
    return this.#attempt(async () =>
      (await this.#redis.hvals(`${this.#prefix}orders`))
        .flatMap(text => this.#dated<StoredOrder>(text) ?? [])
        .sort((first, second) => first.startedAtMs - second.startedAtMs)
        .slice(0, limit),
    )
  }

  saveOrder(order: StoredOrder): Promise<void> {
    return this.#put('orders', order.id, order.startedAtMs, order)
  }

  removeOrder(id: string): Promise<void> {
    return this.#remove('orders', id)
  }

  refusal(id: string): Promise<StoredRefusal | undefined> {
    return this.#attempt(async () => this.#dated(await this.#redis.hget(`${this.#prefix}refusals`, id)))
  }

  saveRefusal(refusal: StoredRefusal): Promise<void> {
    return this.#put('refusals', refusal.id, refusal.untilMs, refusal)
  }

  removeRefusal(id: string): Promise<void> {
    return this.#remove('refusals', id)
  }

  prune(beforeMs: number): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.ltPrune(this.#prefix, beforeMs)
    })
  }

  admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined> {
    const { perName, perNameMs, total, totalMs } = limits
    return this.#attempt(async () => {
      const free = await this.#redis.ltAdmit(this.#prefix, id, nowMs, perName, perNameMs, total, totalMs)
      return free === '' ? undefined : Number(free)
    })
  }

  claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean> {
    return this.#attempt(
      async () => (await this.#redis.ltClaim(this.#prefix, id, holder, nowMs, untilMs)) === 1,
    )
  }

  release(id: string, holder: string): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.ltRelease(this.#prefix, id, holder)
    })
  }

  close(): Promise<void> {
    if (!this.#isClosed) this.#redis.disconnect()
    this.#isClosed = true
    return Promise.resolve()
  }

  // ── What is written ────────────────────────────────────────────────────────────────────────────────────────

  /** Writes an entry with its time before it, for `prune`. */
  #put(table: string, id: string, atMs: number, value: object): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.hset(`${this.#prefix}${table}`, id, `${atMs} ${this.#sealed(value)}`)
    })
  }

  #remove(table: string, id: string): Promise<void> {
    return this.#attempt(async () => {
      await this.#redis.hdel(`${this.#prefix}${table}`, id)
    })
  }

  #dated<Value>(text: string | null): Value | undefined {
    return this.#opened(text === null ? null : text.slice(text.indexOf(' ') + 1))
  }

  #sealed(value: object): string {
    const text = JSON.stringify(value)
    if (this.#key === undefined) return text
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
  }

  #opened<Value>(text: string | null): Value | undefined {
    if (text === null) return undefined
    // Written before there was a secret. Base64 contains no brace.
    if (text.startsWith('{')) return JSON.parse(text) as Value
    if (this.#key === undefined) throw new Error('the certificates in Redis are encrypted: give the secret')
    const bytes = Buffer.from(text, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, 12))
    decipher.setAuthTag(bytes.subarray(12, 28))
    const opened = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
    return JSON.parse(opened.toString()) as Value
  }

  async #attempt<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new TunnelError('STORE_FAILED', 'The store is closed.')
    try {
      return await work()
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const text = `The certificates in Redis cannot be used: ${reason}.`
      throw new TunnelError('STORE_FAILED', text, { cause })
    }
  }
}
