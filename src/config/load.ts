// Loads a configuration file: finds its syntax, reads it, checks it. Faults are values; nothing is thrown.

import { dirname, resolve } from 'node:path'
import type { Checked } from './check.ts'
import { type ClientConfig, checkClient } from './client-config.ts'
import { type Fault, sortFaults } from './fault.ts'
import { type Fields, spellingsOf } from './field.ts'
import { EXTENSIONS, type Extension, extensionOf, readConfigText, whole } from './file.ts'
import { FoundFile, type TrustsServer } from './found.ts'
import type { Read, TableNode } from './node.ts'
import { otherFile, otherName } from './other-files.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from './schema/fields.ts'
import { checkServer, type ServerConfig } from './server-config.ts'
import type { Environment } from './variables.ts'

export interface LoadOptions {
  readonly environment: Environment
  /** The kind. `undefined`: the one of its keys. */
  readonly kind?: 'client' | 'server' | undefined
  /** Set if the file was found in the folder rather than named, so that it may do less. */
  readonly found?: TrustsServer | undefined
}

const refused = (...faults: readonly Fault[]): Checked<never> => ({
  config: undefined,
  faults,
  shown: new Map(),
  places: new Map(),
})

/** The maximum number of faults that are reported for one file. */
const MAX_FAULTS = 100

export async function loadConfig(
  path: string,
  options: LoadOptions,
): Promise<Checked<ClientConfig | ServerConfig>> {
  if (options.found !== undefined && extensionOf(path) === '.ts') {
    return refused(
      whole(`is a program, and was found: it is only run when it is named, with --config ${path}`),
    )
  }
  const read = await readFile(path)
  if ('faults' in read) return refused(...trim(read.faults))
  const root = withoutExtensions(read.root)
  if (root.entries.size === 0) return refused(whole('is empty: it names no service'))
  const other = otherFile(root)
  if (other !== undefined) return refused(other)
  const check = {
    folder: dirname(resolve(path)),
    environment: extensionOf(path) === '.ts' ? undefined : options.environment,
  }
  const kind = options.kind ?? kindOf(root)
  const found = options.found && new FoundFile(root, check.folder, options.found)
  const checked = kind === 'client' ? checkClient(root, { ...check, found }) : checkServer(root, check)
  return { ...checked, faults: trim(checked.faults) }
}

export async function loadClientConfig(
  path: string,
  environment: Environment,
  found?: TrustsServer,
): Promise<Checked<ClientConfig>> {
  // The kind decides the type.
  return (await loadConfig(path, { environment, kind: 'client', found })) as Checked<ClientConfig>
}

export async function loadServerConfig(
  path: string,
  environment: Environment,
): Promise<Checked<ServerConfig>> {
  // The kind decides the type.
  return (await loadConfig(path, { environment, kind: 'server' })) as Checked<ServerConfig>
}

/** Reads a text in one of the syntaxes. Loads only the parser that it needs. */
export async function readText(text: string, extension: Exclude<Extension, '.ts'>): Promise<Read> {
  try {
    switch (extension) {
      case '.toml':
        return (await import('./syntaxes/toml.ts')).readToml(text)
      case '.json':
        return (await import('./syntaxes/json.ts')).readJson(text)
      case '.yaml':
      case '.yml':
        return (await import('./syntaxes/yaml.ts')).readYaml(text)
    }
  } catch (error) {
    // Parsers are recursive: deeply nested brackets exhaust their stack.
    const isDeep = error instanceof RangeError
    return { faults: [whole(isDeep ? 'is nested too deeply' : `cannot be read: ${messageOf(error)}`)] }
  }
}

async function readFile(path: string): Promise<Read> {
  const extension = extensionOf(path)
  if (extension === undefined) {
    return {
      faults: [
        otherName(path) ??
          whole(`has a wrong extension: a configuration file ends in ${EXTENSIONS.join(', ')}`),
      ],
    }
  }
  const text = readConfigText(path)
  if (typeof text !== 'string') return { faults: [text] }
  if (extension !== '.ts') return readText(text, extension)
  return (await import('./syntaxes/typescript.ts')).readTypeScript(resolve(path), text)
}

/** Removes keys such as `x-defaults`, which contain anchors, as in compose files, and which nothing reads. */
function withoutExtensions(root: TableNode): TableNode {
  return { ...root, entries: new Map([...root.entries].filter(([key]) => !key.startsWith('x-'))) }
}

/** Returns the end to which the file belongs: the one that knows more of its keys. */
function kindOf(root: TableNode): 'client' | 'server' {
  const known = (fields: Fields) => {
    const spellings = new Set(Object.entries(fields).flatMap(([key, field]) => spellingsOf(key, field)))
    return [...root.entries.keys()].filter(key => spellings.has(key)).length
  }
  const [ofServer, ofClient] = [known(SERVER_FIELDS), known(CLIENT_FIELDS)]
  // Both have `limits`. A client without services has nothing to do.
  if (ofServer === ofClient && ofServer > 0) return root.entries.has('services') ? 'client' : 'server'
  return ofServer > ofClient ? 'server' : 'client'
}

function trim(faults: readonly Fault[]): readonly Fault[] {
  const sorted = sortFaults(faults)
  if (sorted.length <= MAX_FAULTS) return sorted
  return [...sorted.slice(0, MAX_FAULTS), whole(`has ${sorted.length - MAX_FAULTS} more faults`)]
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0]! : String(error)
}
