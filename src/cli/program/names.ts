// Flags about the public name of a tunnel.

import { optionInvalid, TunnelError } from '../../errors.ts'
import { isValidSubdomain } from '../../names.ts'
import type { Destination } from '../settings/destination.ts'
import type { Flags } from '../settings/flags.ts'
import type { Texts } from './values.ts'

export const subdomainFlag = (standard: string): Texts => ({
  '--subdomain <name>': `name to request (default: ${standard})`,
})

export const PRIVATE_FLAG: Texts = {
  '--private <name>': 'share it without a public address; other machines run: localtunnels connect <name>',
}

export const WILDCARD_FLAG: Texts = { '--wildcard': 'also receive requests for all hosts below the name' }

export const HOST_NAME_FLAG: Texts = {
  '--host-name <host>': 'custom domain that points to the server, such as www.customer.example; repeatable',
}

export function subdomainOf(flags: Flags): string | undefined {
  const subdomain = flags.text('subdomain')?.toLowerCase()
  if (subdomain === undefined || isValidSubdomain(subdomain)) return subdomain
  throw new TunnelError(
    'NAME_INVALID',
    `${flags.label('subdomain')} "${subdomain}" is not a valid subdomain.`,
  )
}

/**
 * Returns the name of a private service. Throws `OPTION_INVALID` without a server: the one in this process has no
 * tokens, so no other client could connect.
 */
export function privateOf(
  flags: Flags,
  { servers }: Pick<Destination, 'servers'>,
): { readonly private?: string } {
  const name = flags.text('private')?.toLowerCase()
  if (name === undefined) return {}
  if (servers.length === 0) throw needServer()
  if (isValidSubdomain(name)) return { private: name }
  throw new TunnelError('NAME_INVALID', `${flags.label('private')} "${name}" is not a valid name.`)
}

export function needServer(): TunnelError {
  const text =
    'A private service needs a tunnel server: give --server <address>, or run: localtunnels login <server>.'
  return optionInvalid(text)
}

export function hostsOf(flags: Flags): { readonly hosts?: readonly string[] } {
  const hosts = flags.list('hostName')
  return hosts.length === 0 ? {} : { hosts }
}
