// Certificates of an ACME authority in Redis or Valkey: the servers of a cluster order each once and share it.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { messageOf, TunnelError } from '../errors.ts'
import type {
  CertificateStore,
  OrderLimits,
  StoredAccount,
  StoredCertificate,
  StoredOrder,
  StoredRefusal,
} from '../store.ts'
import { type Connection, openRedis, type RedisDirectoryOptions } from './redis.ts'

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

  /** Opens the store. Connects at once, and reconnects until it is closed. Throws `OPTION_INVALID` for an invalid URL. */
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
    return this.#run(() => this.#redis.set(`${this.#prefix}account`, this.#sealed(account)))
  }

  removeAccount(): Promise<void> {
    return this.#run(() => this.#redis.del(`${this.#prefix}account`))
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
    return this.#run(() =>
      this.#redis
        .multi()
        .hset(`${this.#prefix}certificates`, id, this.#sealed(certificate))
        .hset(`${this.#prefix}times`, id, JSON.stringify({ renewAtMs, lookAtMs, window }))
        .zadd(`${this.#prefix}due`, lookAtMs, id)
        .hdel(`${this.#prefix}orders`, id)
        .hdel(`${this.#prefix}refusals`, id)
        .exec(),
    )
  }

  reschedule(id: string, { renewAtMs, lookAtMs, window }: Times): Promise<void> {
    return this.#attempt(async () => {
      const times = JSON.stringify({ renewAtMs, lookAtMs, window })
      await this.#redis.ltReschedule(this.#prefix, id, times, lookAtMs)
    })
  }

  removeCertificate(id: string): Promise<void> {
    return this.#run(() =>
      this.#redis
        .multi()
        .hdel(`${this.#prefix}certificates`, id)
        .hdel(`${this.#prefix}times`, id)
        .zrem(`${this.#prefix}due`, id)
        .exec(),
    )
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
    return this.#run(() => this.#redis.ltPrune(this.#prefix, beforeMs))
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
    return this.#run(() => this.#redis.ltRelease(this.#prefix, id, holder))
  }

  close(): Promise<void> {
    if (!this.#isClosed) this.#redis.disconnect()
    this.#isClosed = true
    return Promise.resolve()
  }

  // ── What is written ────────────────────────────────────────────────────────────────────────────────────────

  /** Writes an entry with its time before it, for `prune`. */
  #put(table: string, id: string, atMs: number, value: object): Promise<void> {
    return this.#run(() => this.#redis.hset(`${this.#prefix}${table}`, id, `${atMs} ${this.#sealed(value)}`))
  }

  #remove(table: string, id: string): Promise<void> {
    return this.#run(() => this.#redis.hdel(`${this.#prefix}${table}`, id))
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

  /** Does something whose result does not matter. */
  async #run(work: () => Promise<unknown>): Promise<void> {
    await this.#attempt(work)
  }

  async #attempt<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new TunnelError('STORE_FAILED', 'The store is closed.')
    try {
      return await work()
    } catch (cause) {
      const text = `The certificates in Redis cannot be used: ${messageOf(cause)}.`
      throw new TunnelError('STORE_FAILED', text, { cause })
    }
  }
}

/**
 * The script to plan the next check. ARGV: id, times as JSON, time of the check. Does nothing if there is no such certificate.
 */
export const RESCHEDULE: string = `
local prefix, id = KEYS[1], ARGV[1]
if redis.call('hexists', prefix .. 'certificates', id) == 0 then return 0 end
redis.call('hset', prefix .. 'times', id, ARGV[2])
redis.call('zadd', prefix .. 'due', ARGV[3], id)
return 1`

/** The script to forget. ARGV: a time. Orders, refusals and claims begin with one; those before it are removed. */
export const PRUNE: string = `
local before = tonumber(ARGV[1])
for _, name in ipairs({ 'orders', 'refusals', 'claims' }) do
  local all = redis.call('hgetall', KEYS[1] .. name)
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '^%S+')) < before then redis.call('hdel', KEYS[1] .. name, all[at]) end
  end
end
return 1`

/**
 * The script to admit an order. ARGV: id, now, number of orders for a name and their window, number of orders for all
 * and their window. Returns the time when one is allowed; '' if it was counted.
 */
export const ADMIT: string = `
local prefix, id, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
local ofName, ofAll = prefix .. 'admitted:' .. id, prefix .. 'admitted'
local function freeAt(key, most, window)
  redis.call('zremrangebyscore', key, '-inf', string.format('%.0f', now - window))
  if most == 0 then return nil end
  local last = redis.call('zrevrange', key, most - 1, most - 1, 'withscores')
  return last[2] and tonumber(last[2]) + window
end
local name = freeAt(ofName, tonumber(ARGV[3]), tonumber(ARGV[4]))
local all = freeAt(ofAll, tonumber(ARGV[5]), tonumber(ARGV[6]))
if name or all then return string.format('%.0f', math.max(name or 0, all or 0)) end
local member = redis.call('incr', prefix .. 'admissions')
redis.call('zadd', ofName, ARGV[2], member)
redis.call('zadd', ofAll, ARGV[2], member)
redis.call('pexpire', ofName, ARGV[4] + 60000)
return ''`

/** The script to claim. ARGV: id, holder, now, until. Returns whether the claim succeeded. */
export const CLAIM: string = `
local key, id, holder, now = KEYS[1] .. 'claims', ARGV[1], ARGV[2], tonumber(ARGV[3])
local held = redis.call('hget', key, id)
if held then
  local till, other = string.match(held, '^(%S+) (.*)$')
  if other ~= holder and tonumber(till) > now then return 0 end
end
redis.call('hset', key, id, ARGV[4] .. ' ' .. holder)
return 1`

/** The script to release. ARGV: id, holder. */
export const RELEASE: string = `
local key, held = KEYS[1] .. 'claims', redis.call('hget', KEYS[1] .. 'claims', ARGV[1])
if held and string.match(held, '^%S+ (.*)$') == ARGV[2] then redis.call('hdel', key, ARGV[1]) end
return 1`
