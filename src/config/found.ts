// What a configuration file may do that was found in the current folder, and not named by the user.

import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import type { Value } from './field.ts'
import { spellingsOf } from './field.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS } from './schema/client.ts'
import { type Environment, setVariables } from './variables.ts'

/** Whether the user has chosen a server of this address: logged in there, or set it for this process. */
export type TrustsServer = (server: string) => boolean

/** Keys that say by which way, and how safely, the server is reached. */
const WAYS = ['proxy', 'ca', 'verify-server', 'insecure-token'] as const
/** A server that is one variable as a whole, without a default, is the user's choice. */
const WHOLE_VARIABLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/

/** The keys of a client's file by which a token could be read on its way. */
function waysOf(root: TableNode): readonly string[] {
  return WAYS.filter(key => {
    const field = CLIENT_FIELDS[key]
    return field !== undefined && spellingsOf(key, field).some(spelling => root.entries.has(spelling))
  })
}

/** What may come from variables for a server that the user knows. */
const OWN: ReadonlySet<string> = new Set(['credential', 'token', 'subdomain'])

/**
 * Decides for one file which of its texts may hold variables. It came with the folder, perhaps from a stranger, and what a
 * variable holds may be a secret: so no text may carry one to a host that the user has not chosen.
 */
export class FoundFile {
  /** What it sends goes to a server of the user's choice, by a way of the user's choice. */
  readonly #isServerTrusted: boolean
  readonly #folder: string

  constructor(root: TableNode, folder: string, trusts: TrustsServer) {
    this.#folder = folder
    const node = root.entries.get('server')?.node
    const server = node?.kind === 'value' ? String(node.value) : undefined
    const isChosen =
      server === undefined || WHOLE_VARIABLE.test(server) || (!server.includes('$') && trusts(server))
    this.#isServerTrusted = isChosen && waysOf(root).length === 0
  }

  /**
   * Why a path is not used; `undefined`: it is, or there is none. A folder of files elsewhere may hold the user's tokens and
   * keys, a socket may be that of the ssh agent: neither is for the visitors of a stranger's server.
   */
  pathRefusal(result: unknown, value: Value): string | undefined {
    const path = pathOf(result, value)
    if (path === undefined || isBelow(realPath(path), realPath(this.#folder))) return undefined
    return 'leads out of the folder of this file, which was found and not named: name it with --config'
  }

  /** Why the variables of a text are not used; `undefined`: they are, or there are none that are set. */
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
        // Numbers, choices and paths below the folder: nothing of a variable is sent.
        return undefined
    }
  }
}

/** The folder or socket that a value leads to. */
function pathOf(result: unknown, value: Value): string | undefined {
  if (value.type === 'path' && typeof result === 'string') return result
  const isTarget = value.type === 'target' && typeof result === 'object' && result !== null
  return isTarget && 'unix' in result && typeof result.unix === 'string' ? result.unix : undefined
}

/** Where links lead; of what is not there yet, where its folder does. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // The root is always there.
    return join(realPath(dirname(path)), basename(path))
  }
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
