// A name server that accepts updates (RFC 2136) signed with TSIG: BIND, Knot, PowerDNS, Windows.

import { randomInt } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { dnsFailed } from './failed.ts'
import {
  CLASS_IN,
  CLASS_NONE,
  nameBytes,
  readAnswer,
  recordBytes,
  TYPE_SOA,
  TYPE_TXT,
  textBytes,
  u16,
} from './message.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'
import { exchange } from './transport.ts'
import { sign, signatureFault, type TsigKey } from './tsig.ts'

export interface Rfc2136Options {
  /** The primary server of the zone. */
  readonly host: string
  /** The port. Default 53. */
  readonly port?: number
  /** The zone of the records, such as `example.com`. */
  readonly zone: string
  readonly key: TsigKey
  /** The transport. Default TCP, where no stranger can reply. */
  readonly transport?: 'tcp' | 'udp'
  /** The lifetime of the records, in seconds. Default 60. */
  readonly ttlSeconds?: number
  /** The servers that are asked whether a record is visible. Default: this server alone. */
  readonly servers?: readonly string[]
  readonly clock: Clock
}

const OPCODE_UPDATE = 5 << 11
const CODES: Readonly<Record<number, string>> = {
  1: 'FORMERR: it did not understand the update',
  2: 'SERVFAIL: it could not store the update',
  4: 'NOTIMP: it takes no updates',
  5: 'REFUSED: the key may not change this record',
  9: 'NOTAUTH: it does not have this zone, or does not accept the key',
  10: 'NOTZONE: the record is not in this zone',
}

export class Rfc2136 implements DnsProvider {
  readonly #options: Rfc2136Options
  readonly servers: readonly string[]

  constructor(options: Rfc2136Options) {
    this.#options = options
    const { host, port = 53 } = options
    this.servers = options.servers ?? [`${host.includes(':') ? `[${host}]` : host}:${port}`]
  }

  add(record: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#update(record, CLASS_IN, this.#options.ttlSeconds ?? 60, signal)
  }

  remove(record: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#update(record, CLASS_NONE, 0, signal)
  }

  async #update({ name, value }: DnsRecord, klass: number, ttl: number, signal: AbortSignal): Promise<void> {
    const { host, port = 53, zone, key, transport = 'tcp', clock } = this.#options
    try {
      const id = randomInt(65_536)
      const header = u16(id, OPCODE_UPDATE, 1, 0, 1, 0)
      const change = recordBytes(name, TYPE_TXT, klass, ttl, textBytes(value))
      const message = Buffer.concat([header, nameBytes(zone), u16(TYPE_SOA, CLASS_IN), change])
      const { bytes, mac } = sign(message, key, clock.now())
      const answer = await exchange({ host, port }, bytes, transport, signal)
      const { code, id: answered, isAnswer } = readAnswer(answer)
      if (answered !== id || !isAnswer) throw new Error('it answered something else')
      const fault = signatureFault(answer, key, mac, clock.now())
      // A refusal may be unsigned, for example if the server does not know the key. An acceptance must be signed.
      if (code !== 0)
        throw new Error(`${CODES[code] ?? `code ${code}`}${fault?.startsWith('BAD') ? ` (${fault})` : ''}`)
      if (fault !== undefined) throw new Error(`its answer cannot be trusted: ${fault}`)
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      throw dnsFailed(`The name server ${host} did not change ${name}`, cause)
    }
  }
}
