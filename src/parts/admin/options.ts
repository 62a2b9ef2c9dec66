// The options of the admin listener, with the defaults.

import { optionInvalid } from '../../errors.ts'
import { isValidPort, noPort } from '../../names.ts'
import type { AdminOptions } from '../../server/settings/part-options.ts'
import { MAX_TIMER_MS } from '../../server/settings/settings.ts'
import { DEFAULT_METRIC_TUNNELS } from './metrics.ts'

type Defaults = Pick<AdminOptions, 'port' | 'host' | 'probeMs' | 'maxMetricTunnels'>
export type AdminSettings = AdminOptions & Required<Defaults>

/** Checks the options. Throws `OPTION_INVALID`. */
export function adminSettings(admin: AdminOptions): AdminSettings {
  const { port = 9090, host = '127.0.0.1', token, probeMs = 60_000 } = admin
  const { maxMetricTunnels = DEFAULT_METRIC_TUNNELS } = admin
  if (port !== 0 && !isValidPort(port)) throw noPort(`admin.port ${port}`, 0)
  if (!/^[\x21-\x7e]{16,255}$/.test(token))
    throw optionInvalid('admin.token must be 16 to 255 characters of visible ASCII.')
  if (!(Number.isInteger(probeMs) && probeMs >= 0 && probeMs <= MAX_TIMER_MS))
    throw optionInvalid(`admin.probeMs must be a number of milliseconds, not ${probeMs}.`)
  if (!(Number.isSafeInteger(maxMetricTunnels) && maxMetricTunnels >= 1))
    throw optionInvalid(`admin.maxMetricTunnels must be from 1, not ${maxMetricTunnels}.`)
  return { ...admin, port, host, probeMs, maxMetricTunnels }
}
