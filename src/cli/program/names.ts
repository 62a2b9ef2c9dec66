// Flags about the public name of a tunnel.

import { Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import { isValidSubdomain } from '../../names.ts'
import type { Flags } from '../settings/flags.ts'
import { repeatable } from './values.ts'

export function subdomainOption(standard: string): Option {
  return new Option('--subdomain <name>', `name to request (default: ${standard})`).env('TUNNEL_SUBDOMAIN')
}

export function subdomainOf(flags: Flags): string | undefined {
  const subdomain = flags.text('subdomain')?.toLowerCase()
  if (subdomain === undefined || isValidSubdomain(subdomain)) return subdomain
  throw new TunnelError(
    'NAME_INVALID',
    `${flags.label('subdomain')} "${subdomain}" is not a valid subdomain.`,
  )
}

export function wildcardOption(): Option {
  return new Option('--wildcard', 'also receive requests for all hosts below the name').env('TUNNEL_WILDCARD')
}

export function hostOption(): Option {
  return repeatable(
    '--host-name <host>',
    'custom domain that points to the server, such as www.customer.example; repeatable',
  ).env('TUNNEL_HOST_NAME')
}

export function hostsOf(flags: Flags): { readonly hosts?: readonly string[] } {
  const hosts = flags.list('hostName')
  return hosts.length === 0 ? {} : { hosts }
}
