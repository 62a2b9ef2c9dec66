// Makes the connecting end of a private service from a program's options.

import { positive } from '../../../client/limits.ts'
import type { ConnectOptions } from '../../../client/options.ts'
import { checkToken, type TunnelSettings } from '../../../client/tunnels/tunnel-settings.ts'
import { TunnelError } from '../../../errors.ts'
import { isValidPort, isValidSubdomain, noPort } from '../../../names.ts'
import { checkNames, type Names, namesOf } from '../../../option-names.ts'
import { tcpDoor, udpDoor } from './doors.ts'
import { LocalEnd } from './local-end.ts'

const CONNECT_NAMES: Names<ConnectOptions> = namesOf<ConnectOptions>()('name port token idleTimeoutMs')

/**
 * Makes the end. `failed` is called with the reason if a connection did not reach the service. Throws `NAME_INVALID`
 * or `OPTION_INVALID`.
 */
export function endOf(
  options: ConnectOptions,
  failed: (error: TunnelError) => void,
): { readonly end: LocalEnd; readonly settings: TunnelSettings } {
  checkNames(options, CONNECT_NAMES, 'connectTo()')
  const { port = 0 } = options
  if (port !== 0 && !isValidPort(port)) throw noPort(`port ${port}`)
  const name = privateNameOf(options.name)
  const idleTimeoutMs = positive('idleTimeoutMs', options.idleTimeoutMs ?? 60_000)
  const token = checkToken(options.token)
  const end = new LocalEnd(name, port, name.startsWith('udp:') ? udpDoor(idleTimeoutMs) : tcpDoor, failed)
  return { end, settings: end.settingsWith(token) }
}

/** Returns the full name: `tcp:db` for `db`. Removes `private:` before it, as the other client prints it. */
function privateNameOf(given: string): string {
  const [, kind = 'tcp', name = ''] = /^(?:private:)?(?:(tcp|udp):)?([^:]*)$/.exec(given.toLowerCase()) ?? []
  if (!isValidSubdomain(name))
    throw new TunnelError('NAME_INVALID', `"${given}" is not the name of a private service.`)
  return `${kind}:${name}`
}
