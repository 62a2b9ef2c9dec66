// The rights of a configuration file that was found in the current folder rather than named by the user.

import { readlinkSync, realpathSync } from 'node:fs'
import { isIP } from 'node:net'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Value } from './field.ts'
import { spellingsOf } from './field.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS } from './schema/fields.ts'
import { parseRouteTarget } from './target.ts'
import { type Environment, setVariables } from './variables.ts'

/** The maximum number of links to follow, as in the system. */
const MAX_LINKS = 40

/** Returns whether the user has chosen the server with this address: logged in there, or set it for this process. */
export type TrustsServer = (server: string) => boolean

/** The keys that decide how, and how safely, the server is reached. */
const WAYS = ['proxy', 'ca', 'verify-server', 'insecure-token'] as const
/** A pattern for a server that is one whole variable without a default, and so the user's choice. */
const WHOLE_VARIABLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/

/** Returns the keys of a client's file with which others could read a token. */
function waysOf(root: TableNode): readonly string[] {
  return WAYS.filter(key => {
    const field = CLIENT_FIELDS[key]
    return field !== undefined && spellingsOf(key, field).some(spelling => root.entries.has(spelling))
  })
}

/** The values that may come from variables for a server that the user knows. */
const OWN: ReadonlySet<string> = new Set(['credential', 'token', 'subdomain'])

/**
 * Decides for one file which of its texts may use variables. The file came with the folder, possibly from a stranger,
 * and a variable may contain a secret: no text may send one to a host that the user has not chosen.
 */
export class FoundFile {
  /** Whether the user chose the server and how to reach it. */
  readonly #isServerTrusted: boolean
  readonly #folder: string
  readonly #server: string | undefined

  constructor(root: TableNode, folder: string, trusts: TrustsServer) {
    this.#folder = folder
    const node = root.entries.get('server')?.node
    const items = node?.kind === 'list' ? node.items : node === undefined ? [] : [node]
    const servers = items.map(item => (item.kind === 'value' ? String(item.value) : ''))
    this.#server = servers[0]
    const isChosen = servers.every(
      server => WHOLE_VARIABLE.test(server) || (!server.includes('$') && trusts(server)),
    )
    this.#isServerTrusted = isChosen && waysOf(root).length === 0
  }

  /**
   * Returns why a path is not used. `undefined` if it is, or there is none. Another folder may contain the user's
   * tokens and keys, a socket may be that of the ssh agent, and a certificate contains the user's name: none of them
   * is for a stranger's server.
   */
  pathRefusal(text: string, value: Value): string | undefined {
    const path = pathOf(text, value, this.#folder)
    if (path === undefined || isBelow(realPath(path), realPath(this.#folder))) return undefined
    return 'leads out of the folder of this file, which was found and not named: name it with --config'
  }

  /**
   * Returns why an app at this host is not shared. `undefined` if it is. The user's machine can reach hosts that a stranger
   * cannot: a cloud's metadata, a database, a router. Names are not looked up, because their address may change.
   */
  hostRefusal(host: string): string | undefined {
    if (this.#isServerTrusted || isThisMachine(host)) return undefined
    const way = this.#server === undefined ? '' : `, or run: localtunnels login ${this.#server}`
    return `"${host}" is not an address of this machine, and this file was found and not named, with a server or a way to it that you have not chosen: name it with --config${way}`
  }

  /** Returns why the variables of a text are not used. `undefined` if they are, or it has none. */
  refusal(text: string, value: Value, environment: Environment): string | undefined {
    const [name] = setVariables(text, environment)
    if (name === undefined) return undefined
    const because = `the variable ${name} is not used, because this file was found and not named`
    switch (value.type) {
      case 'text':
        if (value.form === 'server' && WHOLE_VARIABLE.test(text)) return undefined
        if (!OWN.has(value.form)) return `${because}: name it with --config`
        if (this.#isServerTrusted) return undefined
        return `${because}: name it with --config, or log in to its server with "localtunnels login"`
      case 'target':
        return `${because}: name it with --config`
      default:
        // Numbers, choices and paths below the folder: no variable is sent.
        return undefined
    }
  }
}

function pathOf(text: string, value: Value, folder: string): string | undefined {
  if (value.type === 'path' || value.type === 'file') return resolve(folder, text)
  const target = value.type === 'target' ? parseRouteTarget(text, folder) : undefined
  return target !== undefined && 'unix' in target ? target.unix : undefined
}

/** Whether a host means this machine, in an unambiguous spelling. */
function isThisMachine(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** Returns the target of links; for a missing file, that of its folder. */
function realPath(path: string, links = 0): string {
  try {
    return realpathSync(path)
  } catch {
    // The root always exists.
    const place = join(realPath(dirname(path), links), basename(path))
    const target = linkAt(place)
    if (target === undefined) return place
    // A ring of links has no target.
    return links < MAX_LINKS ? realPath(resolve(dirname(place), target), links + 1) : sep
  }
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined // nothing is there, or it is not a link
  }
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
