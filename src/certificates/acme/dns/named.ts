// Makes a DNS provider from the short text of command lines and configuration files, with its secrets from the environment.

import { readFile } from 'node:fs/promises'
import { optionInvalid, type TunnelError, whyUnreadable } from '../../../errors.ts'
import { systemClock } from '../../clock.ts'
import type { AcmeDnsOptions } from './acme-dns.ts'
import type { DnsProvider } from './provider.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * | text | variables |
 * |---|---|
 * | `cloudflare` | `CLOUDFLARE_API_TOKEN` |
 * | `route53` | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` if there is one |
 * | `rfc2136://key@host:port/zone` | `ACME_DNS_SECRET`, base64, for hmac-sha256 |
 * | `exec:/path/of/a/program` | those of the program |
 * | `acme-dns:/path/of/accounts.json` | none: the file has `url` and `accounts` |
 *
 * Rejects with `OPTION_INVALID`.
 */
export async function namedDnsProvider(text: string, environment: Environment): Promise<DnsProvider> {
  const need = (name: string): string => {
    const value = environment[name]
    if (value) return value
    throw invalid(`${text} needs the variable ${name}.`)
  }
  if (text === 'cloudflare') {
    const { Cloudflare } = await import('./cloudflare.ts')
    return new Cloudflare({ token: need('CLOUDFLARE_API_TOKEN') })
  }
  if (text === 'route53') {
    const { Route53 } = await import('./route53.ts')
    const sessionToken = environment.AWS_SESSION_TOKEN
    const credentials = {
      accessKeyId: need('AWS_ACCESS_KEY_ID'),
      secretAccessKey: need('AWS_SECRET_ACCESS_KEY'),
      ...(sessionToken && { sessionToken }),
    }
    return new Route53({ credentials, clock: systemClock })
  }
  if (text.startsWith('rfc2136:')) {
    const { Rfc2136 } = await import('./rfc2136.ts')
    const { username, hostname, port, pathname } = URL.parse(text) ?? {}
    const zone = pathname?.slice(1)
    if (!username || !hostname || !zone || zone.includes('/'))
      throw invalid(`"${text}" is not of the form rfc2136://key-name@name-server/zone.`)
    const key = { name: decodeURIComponent(username), secret: need('ACME_DNS_SECRET') }
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    return new Rfc2136({ host, zone, key, clock: systemClock, ...(port && { port: Number(port) }) })
  }
  if (text.startsWith('exec:/')) {
    const { ExecHook } = await import('./exec.ts')
    return new ExecHook({ command: [text.slice('exec:'.length)] })
  }
  if (text.startsWith('acme-dns:')) {
    const { AcmeDns } = await import('./acme-dns.ts')
    return new AcmeDns(await accountsIn(text.slice('acme-dns:'.length)))
  }
  throw invalid(
    `"${text}" is none of cloudflare, route53, rfc2136://key-name@name-server/zone, exec:/path and acme-dns:/path.`,
  )
}

async function accountsIn(path: string): Promise<AcmeDnsOptions> {
  try {
    const file: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (isAccounts(file)) return file
  } catch (cause) {
    throw invalid(`${path} cannot be read: ${whyUnreadable(cause)}.`, cause)
  }
  throw invalid(`${path} is no file with the url of an acme-dns server and a list of accounts.`)
}

function isAccounts(file: unknown): file is AcmeDnsOptions {
  if (typeof file !== 'object' || file === null || !('url' in file) || !('accounts' in file)) return false
  return typeof file.url === 'string' && Array.isArray(file.accounts) && file.accounts.every(isAccount)
}

function isAccount(one: unknown): boolean {
  const fields = ['username', 'password', 'subdomain', 'fulldomain']
  return (
    typeof one === 'object' &&
    one !== null &&
    fields.every(field => typeof Reflect.get(one, field) === 'string')
  )
}

const invalid = (detail: string, cause?: unknown): TunnelError => optionInvalid(detail, { cause })
