// The admin listener of a live server, asked as its operator would.

import type { AdminOptions } from '../../src/server/settings/part-options.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'

export const ADMIN_TOKEN = 'an-admin-token-of-tests'

/** For `admin` of a server: any free port, no probes unless a test wants them. */
export const adminOptions = (more: Partial<AdminOptions> = {}): AdminOptions => ({
  port: 0,
  token: ADMIN_TOKEN,
  probeMs: 0,
  ...more,
})

export interface AdminAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: JSON that a test looks into
  readonly body: any
}

/** `path` is below /api/v1. */
export async function askAdmin(
  server: TunnelServer,
  path: string,
  { method = 'GET', body, token = ADMIN_TOKEN }: { method?: string; body?: unknown; token?: string } = {},
): Promise<AdminAnswer> {
  const answer = await fetch(`${server.adminUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: await answer.json() }
}

export async function metricsOf(server: TunnelServer): Promise<string> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  return (await fetch(`${server.adminUrl}/metrics`, { headers })).text()
}

/** The value of a sample, by its name and labels; `undefined`: it is not there. */
export function sampleOf(metrics: string, name: string): number | undefined {
  const line = metrics.split('\n').find(one => one.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}
