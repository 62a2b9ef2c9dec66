// iperf3: bits per second over one or several TCP connections, or as UDP datagrams.

import { finish, launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'

export function hasIperf(): boolean {
  return Bun.which('iperf3') !== null
}

/** Serves one test after the other, as iperf3 does. */
export async function startIperf(): Promise<{ readonly port: number; stop(this: void): Promise<void> }> {
  const port = freePort()
  const child = await launch(['iperf3', '-s', '-B', '127.0.0.1', '-p', String(port)])
  await listening(port)
  return { port, stop: child.stop }
}

export interface Bitrate {
  readonly gbitPerSecond: number
  /** Per cent of datagrams that did not arrive; 0 for TCP. */
  readonly lost: number
}

/** The server refuses while it still deals with the last connection, which may have been the probe of a tunnel. */
const ATTEMPTS = 10
/** iperf3 says nowhere that it is free again. */
const PAUSE_MS = 200

export interface BitrateLoad {
  /** Connections at once. Default 1. */
  readonly streams?: number
  /** `down`: from the server, as `-R` has it. Default `up`. */
  readonly way?: 'up' | 'down'
  /** Datagrams. Default `false`. */
  readonly udp?: boolean
}

export async function iperf(port: number, seconds: number, load: BitrateLoad): Promise<Bitrate> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(port, seconds, load)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      await Bun.sleep(PAUSE_MS)
    }
  }
}

async function once(
  port: number,
  seconds: number,
  { streams = 1, way = 'up', udp = false }: BitrateLoad,
): Promise<Bitrate> {
  const more = `${way === 'down' ? ' -R' : ''}${udp ? ' -u -b 0 -l 1400' : ''}`
  const flags = `-c 127.0.0.1 -p ${port} -t ${seconds} -P ${streams} -J${more}`
  const { stdout, stderr } = await finish(['iperf3', ...flags.split(' ')], {
    timeoutMs: (seconds + 20) * 1000,
  })
  // The documented JSON output; `error` when it failed.
  const report = JSON.parse(stdout || '{}') as {
    readonly error?: string
    readonly end?: {
      readonly sum_received?: { readonly bits_per_second: number; readonly lost_percent?: number }
      readonly sum?: { readonly bits_per_second: number; readonly lost_percent?: number }
    }
  }
  const sum = udp ? (report.end?.sum_received ?? report.end?.sum) : report.end?.sum_received
  if (report.error || !sum) throw new Error(`iperf3: ${report.error ?? (stderr || 'no result')}`)
  return { gbitPerSecond: sum.bits_per_second / 1e9, lost: sum.lost_percent ?? 0 }
}
