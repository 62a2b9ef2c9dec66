// `localtunnels link`: makes a signed link to a tunnel of this user, or revokes one. The client with the tunnel runs
// in another process.

import { allGuards, type KeptGuard, revokeIn } from '../../client/tunnels/guard-files.ts'
import { optionInvalid } from '../../errors.ts'
import { makeLink } from '../../own-guard.ts'
import { stateFolder } from '../../state-folder.ts'
import type { CommandIo } from '../run.ts'
import { isSameServer } from '../settings/destination.ts'

export interface LinkSettings {
  readonly name: string
  /** The server of the name, if several servers have it. */
  readonly server: string | undefined
  readonly path: string | undefined
  readonly forMs: number | undefined
  readonly isOnce: boolean
  /** The id of a link to revoke, in place of making one. */
  readonly revoke: string | undefined
  readonly isJson: boolean
}

/** Makes a link. Rejects with `OPTION_INVALID` if there is no such tunnel, or its guard has no links. */
/** Makes or revokes a link. Rejects with `OPTION_INVALID` if there is no such tunnel, or its guard has no links. */
export async function link(settings: LinkSettings, { environment, write, log }: CommandIo): Promise<void> {
  const { path, kept } = await findGuard(settings, environment)
  const { revoke, isJson } = settings
  if (revoke !== undefined) {
    if (!/^[\w-]{1,64}$/.test(revoke)) throw optionInvalid(`"${revoke}" is not the id of a link.`)
    await revokeIn(path, kept, revoke)
    const said = isJson
      ? JSON.stringify({ revoked: revoke })
      : `The link ${revoke} stops working within a second.`
    return write(`${said}\n`)
  }
  const { path: to, forMs, isOnce } = settings
  const { url, id } = makeLink(kept.url, kept.secret, {
    ...(to !== undefined && { path: to }),
    ...(forMs !== undefined && { forMs }),
    once: isOnce,
  })
  if (isJson) return write(`${JSON.stringify({ url, id })}\n`)
  write(`${url}\n`)
  log(`To revoke it: localtunnels link ${kept.name} --revoke ${id}\n`)
}

async function findGuard(
  { name, server }: LinkSettings,
  environment: CommandIo['environment'],
): Promise<{ readonly path: string; readonly kept: KeptGuard }> {
  const folder = stateFolder(environment)
  const all = folder === undefined ? [] : await allGuards(folder)
  const fitting = all.filter(
    ({ kept }) =>
      kept.name === name &&
      kept.hasLinks &&
      kept.url !== '' &&
      (server === undefined || isSameServer(server, kept.server)),
  )
  const [first, second] = fitting
  if (first === undefined)
    throw optionInvalid(
      `No tunnel "${name}" with links was started here: it needs --server (or login), --links and --subdomain.`,
    )
  if (second !== undefined)
    throw optionInvalid(
      `"${name}" is at several servers: give --server ${fitting.map(({ kept }) => kept.server).join(' or ')}.`,
    )
  return first
}
