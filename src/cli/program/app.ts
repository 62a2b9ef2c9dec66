// The flags for the place of the app.

import { optionInvalid } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'
import { type AppTls, parseTarget, type Target } from '../settings/target.ts'
import { isBareWord, unknownWord } from '../words.ts'
import { CONNECTION_FLAGS } from './connection.ts'
import { type FlagTexts, given, readAuthority } from './values.ts'

export const APP_FLAGS: FlagTexts = {
  'App:': {
    '-p, --port <port>': 'port of the app (default: 3000)',
    '--host <host>': 'host of the app (default: localhost)',
    '--serve <folder>': 'share a folder of files instead of an app',
    '--app-ca <file>':
      "trust an https app's certificate if these authorities signed it, PEM (default: the usual authorities)",
    '--app-server-name <name>': "name that an https app's certificate must have (default: the app's host)",
    '--app-insecure': 'accept any certificate of an https app (default: only if the app is on this machine)',
  },
  ...CONNECTION_FLAGS,
}

export function appTls(flags: Flags): AppTls {
  const ca = flags.text('appCa')
  return given({
    appInsecure: flags.isOn('appInsecure'),
    appCa: ca === undefined ? undefined : readAuthority(ca, flags.label('appCa')),
    appServerName: flags.text('appServerName'),
  })
}

/** Throws for flags about HTTPS apps if none of the apps uses HTTPS. */
export function needHttps(flags: Flags, apps: readonly Target['options'][]): void {
  const [typed] = ['appCa', 'appServerName', 'appInsecure'].filter(name => flags.isTyped(name))
  if (typed === undefined || apps.some(app => 'url' in app && app.url.startsWith('https:'))) return
  throw optionInvalid(`${flags.label(typed)} is for an https:// app, and none is given.`)
}

/** Returns the target. A typed one wins over variables; two of the same kind are an error. */
export function targetOf(flags: Flags, positional: string | undefined): Target {
  const named = ['port', 'serve'].filter(name => flags.text(name) !== undefined)
  const typed = named.filter(name => flags.isTyped(name))
  const counted = positional !== undefined || typed.length > 0 ? typed : named
  const ways = counted.map(name => `${flags.label(name)} ${flags.text(name)}`)
  if (positional !== undefined) ways.unshift(positional)
  if (positional !== undefined && isBareWord(positional)) throw unknownWord(positional)
  if (ways.length > 1) throw optionInvalid(`The app is given twice: ${ways.join(' and ')}.`)
  const host = flags.text('host')
  if (host !== undefined && /^\w+:\/\//.test(host))
    throw optionInvalid(
      `${flags.label('host')} is the host of the app, not "${host}". For the server use --server ${host}.`,
    )
  const isFolder = counted.includes('serve')
  if (!isFolder && flags.isTyped('spa')) throw optionInvalid('--spa belongs to --serve, which is not given.')
  return parseTarget({
    positional,
    port: flags.port('port', 1),
    host,
    tls: appTls(flags),
    folder: isFolder ? flags.text('serve') : undefined,
    isSpa: flags.isOn('spa'),
  })
}
