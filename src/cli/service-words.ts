// Separates secrets from the words of a service: all users of the machine can read unit files, so secrets go into a
// file of one user.

import { type Command, CommanderError } from 'commander'
import type { Fields, Value } from '../config/field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from '../config/schema/fields.ts'
import { optionInvalid, type TunnelError } from '../errors.ts'
import type { Actions } from './actions.ts'
import { createProgram } from './program.ts'
import { commandsOf } from './settings/environment.ts'
import { translate } from './words.ts'

export interface ServiceWords {
  /** The words for the unit file. */
  readonly words: readonly string[]
  /** The variables for the command: secrets from the words, and the current variables of its flags. */
  readonly variables: Readonly<Record<string, string>>
  /** The command at the beginning of the words, such as `up`; `localtunnels` if an app is shared without the word `http`. */
  readonly command: string
  /** The value of `--config`. */
  readonly file: string | undefined
}

/** Throws `OPTION_INVALID` for words that are not a valid command line, and for secrets that no variable can carry. */
export async function separateSecrets(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ServiceWords> {
  const command = await parsed(words)
  const variables: Record<string, string> = {}
  const moved = new Set<string>()
  for (const option of command.options) {
    const { envVar, long, short } = option
    if (envVar === undefined) continue
    const source = command.getOptionValueSource(option.attributeName())
    const variable = environment[envVar]
    if (source === 'env' && variable !== undefined) variables[envVar] = variable
    const value: unknown = command.getOptionValue(option.attributeName())
    const values = (Array.isArray(value) ? value : [value]).filter(one => typeof one === 'string')
    if (source !== 'cli' || !(isSecretFlag(long) || values.some(hasPassword))) continue
    // The variable of a repeatable flag separates its values by commas.
    if (Array.isArray(value) && values.some(one => one.includes(','))) throw exposed(`${long} with a comma`)
    variables[envVar] = values.join(',')
    for (const flag of [long, short]) if (flag !== undefined) moved.add(flag)
  }
  const hasServer = command.options.some(({ long }) => long === '--server')
  if (moved.has('--token') && hasServer && command.getOptionValue('server') === undefined)
    throw optionInvalid(
      'A service with --token needs --server: it gets the token as a variable, which goes to no default server.',
    )
  const kept = without(words, moved)
  const secret = kept.find(word => isSecretFlag(word.split('=')[0]) || hasPassword(word))
  if (secret !== undefined)
    throw exposed(secret.startsWith('--') ? (secret.split('=')[0] ?? '') : 'A password')
  const file: unknown = command.getOptionValue('config')
  return {
    words: kept,
    variables,
    command: command.name(),
    file: typeof file === 'string' ? file : undefined,
  }
}

/** Parses the words completely, without running the command. */
async function parsed(words: readonly string[]): Promise<Command> {
  let found: Command | undefined
  const nothing = async () => {}
  // The actions only record the command.
  const argv = translate(words)
  const program = await createProgram(new Proxy({} as Actions, { get: () => nothing }), argv)
  for (const one of commandsOf(program))
    one.exitOverride().configureOutput({ writeOut: nothing, writeErr: nothing, outputError: nothing })
  program.hook('preAction', (_, command) => {
    found = command
  })
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (cause) {
    if (!(cause instanceof CommanderError)) throw cause
    const why = cause.message.replace(/^error: /, '').split('\n')[0]
    throw optionInvalid(`A service cannot run these words: ${why}.`, { cause })
  }
  if (found === undefined) throw optionInvalid('A service cannot run these words.')
  return found
}

function without(words: readonly string[], moved: ReadonlySet<string>): readonly string[] {
  const kept: string[] = []
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!
    // The words of another program.
    if (word === '--') return [...kept, ...words.slice(index)]
    if (!moved.has(word.split('=')[0]!)) kept.push(word)
    else if (!word.includes('=')) index++
  }
  return kept
}

function exposed(what: string): TunnelError {
  return optionInvalid(
    `${what} would be in a file that others can read: use localtunnels login, or a configuration file.`,
  )
}

/** Whether the text contains `https://user:password@host`, also after `--route /api=`. */
function hasPassword(text: string): boolean {
  return /[a-z][a-z\d+.-]*:\/\/[^\s/?#]*@/i.test(text)
}

export function isSecretFlag(long: string | undefined): boolean {
  return long !== undefined && SECRET_FLAGS.has(long)
}

/** The flags for keys that configuration files mark as secrets: `--token`, `--admin-token` for `admin.token`. */
const SECRET_FLAGS: ReadonlySet<string> = new Set(
  [...secretsOf(CLIENT_FIELDS, []), ...secretsOf(SERVER_FIELDS, [])].map(name => `--${name}`),
)

function secretsOf(fields: Fields, above: readonly string[]): readonly string[] {
  return Object.entries(fields).flatMap(([key, { value, isRequired }]) => {
    // `--cluster` is the required `url` of the table.
    const table = isRequired === true ? above.slice(-1) : []
    return namesOf(value, [...above, key], table)
  })
}

function namesOf(value: Value, path: readonly string[], table: readonly string[]): readonly string[] {
  switch (value.type) {
    case 'text':
      return value.isSecret === true ? [path.join('-'), ...path.slice(-1), ...table] : []
    case 'list':
    case 'map':
      return namesOf(value.of, path, table)
    case 'either':
      return value.of.flatMap(one => namesOf(one, path, table))
    case 'table':
      return secretsOf(value.fields, path)
    default:
      return []
  }
}
