// The contract of an attack, and what every process of the hostile soak knows of the others.

import type { TunnelServerOptions } from '../../../src/index.ts'
import type { Scene } from './scene.ts'

/** Where an attacker finds the server and the tunnels of the honest client. */
export interface Target {
  /** The source tree under test: attackers with a tunnel of their own use its client. */
  readonly source: string
  readonly port: number
  readonly tlsPort: number
  /** All public TCP ports of the server, first and last. */
  readonly tcpPorts: readonly [number, number]
  /** Host of the honest client's HTTP tunnel, its raw ports, and the host below its wildcard tunnel. */
  readonly honestHost: string
  readonly honestTcpPort: number
  readonly honestUdpPort: number
  /** Where the honest client's app listens. */
  readonly appPort: number
  /** What an attacker that is a client may use: a token that opens every name. */
  readonly token: string
  readonly serverPid: number
  /** Seconds that the attack lasts. */
  readonly seconds: number
}

/** What an attacker did, by name: "requests", "connections", "answered". Written while the attack runs. */
export type Tally = Record<string, number>

/** What one attack is allowed to do to others. A value above it is harm. */
export interface Bounds {
  /** Requests of honest visitors that fail while the attack runs. Wrong bytes are never allowed. */
  readonly failures: number
  /** 99th percentile of small honest requests, in ms, on top of what the same visitors see when they ask the app itself. */
  readonly p99Ms: number
  /** Descriptors that the server or the client has more of when the attack is over and was recovered from. */
  readonly keptFiles: number
  /** Growth of the resident memory of the server at its peak, in MB. */
  readonly serverMb: number
  /** The same for the honest client. */
  readonly clientMb: number
}

/**
 * 150 MB: a heap under hundreds of thousands of messages a second grows to a multiple of what lives in it before it is
 * collected. Honest visitors come and go too: 60 descriptors are pooled streams, links, and pipes of the splicing thread.
 */
export const DEFAULT_BOUNDS: Bounds = { failures: 0, p99Ms: 100, keptFiles: 60, serverMb: 150, clientMb: 150 }

/** What the runner saw, for an attack that has more to say than the bounds. */
export interface Evidence {
  readonly tally: Tally
  readonly seconds: number
  /** Events of the server while the attack ran: how many of `error CODE` and `refused CODE`. */
  readonly told: Readonly<Record<string, number>>
  /** Processor time of the server while the attack ran, in cores. */
  readonly serverCores: number
}

/** As those of the library; `limits` may have fixed bounds as well. */
export interface AttackedOptions extends Omit<TunnelServerOptions, 'limits'> {
  readonly limits?: Readonly<Record<string, number | undefined>> | undefined
}

export interface Attack {
  /** Unique, short: what `--only` matches. */
  readonly name: string
  /** One line for the table: who does what, with how many. */
  readonly does: string
  /** Options of the server that differ from those of the scene. Limits that the source under test does not know are left out. */
  readonly server?: AttackedOptions
  /** The server's port speaks TLS, and so do the honest visitors and their client. */
  readonly isTls?: true
  /** `ulimit -n` of the server. Default: that of the runner. */
  readonly openFiles?: number
  /** Bounds that differ, each with its reason in a comment. */
  readonly bounds?: Partial<Bounds>
  /** Begins while the server is still cold: its threads are then started under the attack. Default after a warm-up. */
  readonly isCold?: boolean
  /** What takes longer than the others: the least that it lasts in a run that is not quick. */
  readonly minSeconds?: number
  /** Processes that run `attack` at the same time. Default 1. */
  readonly attackers?: number
  /** Runs in the runner before anything is measured: what the attack is to find there. */
  prepare?(scene: Scene): Promise<void>
  /** Runs in a process of its own until `until` aborts. */
  attack?(target: Target, tally: Tally, until: AbortSignal): Promise<void>
  /** Runs in the runner: signals to processes, visitors of its own. With `attack`, both run at once. */
  stage?(scene: Scene, tally: Tally, until: AbortSignal): Promise<void>
  /** More reasons why this was harm. */
  judge?(evidence: Evidence): readonly string[]
}

/** Addresses by source, so that limits per address tell them apart. */
export const HONEST_ADDRESS = '127.0.0.10'
export const ATTACKER_ADDRESS = '127.0.0.66'

export const HONEST_TOKEN = 'honest-token-of-the-soak'
export const HOSTILE_TOKEN = 'hostile-token-of-the-soak'
