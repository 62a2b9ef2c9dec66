// Inherited listening sockets, as systemd passes them to a service (sd_listen_fds(3)): descriptors from 3 on.

import { optionInvalid } from '../../errors.ts'

const FIRST = 3
/** The maximum number of sockets: more ports than a server has. */
const MOST = 65_536

/**
 * Returns the descriptors that were passed to this process; none if they are for another one. Removes the variables
 * from `environment`, because child processes have no such descriptors. Throws `OPTION_INVALID`.
 */
export function passedDescriptors(
  environment: Record<string, string | undefined>,
  pid: number,
): readonly number[] {
  const { LISTEN_PID, LISTEN_FDS } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES', 'LISTEN_PIDFDID'])
    delete environment[name]
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return []
  const count = Number(LISTEN_FDS)
  if (!/^\d+$/.test(LISTEN_FDS) || count > MOST)
    throw optionInvalid(`LISTEN_FDS "${LISTEN_FDS}" is not a number of sockets. Let systemd set it.`)
  return Array.from({ length: count }, (_, at) => FIRST + at)
}
