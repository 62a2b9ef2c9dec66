// Runs a command line: chooses what the user sees, and turns every failure into one line and an exit code.

import { inspect } from 'node:util'
import { type Command, CommanderError } from 'commander'
import { TunnelError } from '../errors.ts'
import type { Desk } from './commands/login.ts'
import { withPages } from './documentation.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { visible } from './format.ts'
import { GatheredSink } from './gathered.ts'
import type { Output, OutputWish, Sink } from './output.ts'
import { BoundedOutput } from './outputs/bounded.ts'
import { JsonOutput } from './outputs/json.ts'
import { PlainOutput } from './outputs/plain.ts'
import { TerminalOutput } from './outputs/terminal.ts'
import { paletteFor } from './palette.ts'
import { createProgram } from './program.ts'
import type { Run } from './run.ts'
import { onHangup, stopSignal } from './stop.ts'
import { COMMANDS, isBareWord, translate, unknownWord } from './words.ts'

/** Runs `argv` (without the program's own name) in this process. Never returns: exits when everything is written. */
export async function main(argv: readonly string[]): Promise<void> {
  const [out, log] = [new GatheredSink(process.stdout), new GatheredSink(process.stderr)]
  const exitCode = await runCommand(argv, out, log)
  // A pipe whose reader is slow gets everything; a second Ctrl+C ends the wait.
  await Promise.all([out.written(), log.written()])
  // Timers and sockets that are still closing must not keep a finished command alive.
  process.exit(exitCode)
}

async function runCommand(argv: readonly string[], out: GatheredSink, log: GatheredSink): Promise<number> {
  const words = translate(argv)
  let output: Output | undefined
  const flush = () => {
    out.flush()
    log.flush()
  }
  const stop = stopSignal(exitCode => {
    output?.close()
    flush()
    process.exit(exitCode)
  })
  let unwritten: NodeJS.ErrnoException | undefined
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of our stdout has left, as `head` does: there is nothing left to say, so this is a clean end.
    if (!NO_SPACE.has(error.code ?? '')) return stop.abort()
    // A tunnel goes on without what it would print.
    unwritten = error
  })
  process.stderr.on('error', () => {})
  const start = (wish: OutputWish): Run => {
    output = chooseOutput(wish, out, log)
    const terminal = process.stdout.isTTY ? (sequence: string) => out.write(sequence) : undefined
    return { output, stop: stop.signal, onHangup, environment: process.env, terminal }
  }
  const program = createProgram({
    share: async (settings, wish) => (await import('./commands/share.ts')).shareApp(settings, start(wish)),
    shareRaw: async (settings, wish) => (await import('./commands/raw.ts')).shareRaw(settings, start(wish)),
    serve: async (settings, wish) => (await import('./commands/server.ts')).serve(settings, start(wish)),
    up: async (settings, wish) => (await import('./commands/up.ts')).up(settings, start(wish)),
    checkConfig: async settings => {
      const { checkConfig } = await import('./commands/config.ts')
      await checkConfig(settings, {
        palette: paletteFor(process.stdout.isTTY, process.env),
        environment: process.env,
        write: text => out.write(text),
      })
    },
    printSchema: async () => {
      const { jsonSchema } = await import('../config/json-schema.ts')
      out.write(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
    },
    login: async settings => {
      const { login } = await import('./commands/login.ts')
      exitCode = await login(settings, await desk(out))
    },
    logout: async server => {
      const { logout } = await import('./commands/login.ts')
      exitCode = logout(server, await desk(out))
    },
    whoami: async () => {
      const { whoami } = await import('./commands/login.ts')
      exitCode = whoami(await desk(out))
    },
    doctor: async settings => {
      const { doctor } = await import('./commands/doctor.ts')
      const palette = paletteFor(process.stdout.isTTY, process.env)
      exitCode = await doctor(settings, {
        palette,
        environment: process.env,
        write: text => out.write(text),
      })
    },
  })
  let exitCode: number = EXIT.ok
  let command: Command = program
  program.hook('preAction', (_, one) => {
    command = one
  })
  normaliseEnvironment(process.env, program)
  for (const one of commandsOf(program)) {
    // What went wrong is said by fail(), in one line.
    const writeOut = (text: string) => out.write(text)
    one.exitOverride().configureOutput({ writeOut, outputError: () => {}, writeErr: () => {} })
  }
  try {
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    // A program that reads events reads this one too, however early it comes.
    if (isJsonAsked(words)) output ??= new JsonOutput(out, () => new Date())
    exitCode = fail(error, { output, log, words, command })
  }
  output?.close()
  await out.written()
  // The stream's error comes after the write's own.
  await new Promise(resolve => setImmediate(resolve))
  if (unwritten !== undefined && exitCode === EXIT.ok) {
    const cause = `Not all of standard output could be written (${unwritten.code}).`
    exitCode = fail(new TunnelError('OUTPUT_INCOMPLETE', cause), { output: undefined, log, words, command })
  }
  flush()
  return exitCode
}

const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** What the commands about logins work with. */
async function desk(out: Sink): Promise<Desk> {
  const { Logins } = await import('./logins.ts')
  return {
    logins: new Logins(process.env),
    environment: process.env,
    input: process.stdin,
    write: text => out.write(text),
    prompt: text => process.stderr.write(text),
  }
}

interface Failed {
  readonly output: Output | undefined
  readonly log: Sink
  readonly words: readonly string[]
  /** The command that ran, if it got so far. */
  readonly command: Command
}

/** Says what went wrong in one line on stderr, and to a program that reads JSON also there. */
function fail(error: unknown, { output, log, words, command }: Failed): number {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  const known = knownError(error, words)
  const message = inUsersWords(known.message, command)
  output?.close()
  const whole = output instanceof BoundedOutput ? output.inner : output
  if (whole instanceof JsonOutput) whole.event({ type: 'error', code: known.code, message })
  const { red, bold } = paletteFor(process.stderr.isTTY, process.env)
  log.write(`${red('error')} ${bold(known.code)}: ${visible(message)}\n`)
  if (process.env.LOCALTUNNELS_DEBUG === '1') log.write(`${inspect(error)}\n`)
  return exitCodeOf(known.code)
}

function knownError(error: unknown, argv: readonly string[]): TunnelError {
  if (error instanceof TunnelError) return error
  // `tpc 22` and `sever --domain x`: for commander an app with something behind it that does not belong there.
  const [first = '', second = ''] = argv
  const word = first === 'help' ? second : first
  if (error instanceof CommanderError && isBareWord(word) && !COMMANDS.includes(word))
    return unknownWord(word)
  if (error instanceof CommanderError) return new TunnelError('OPTION_INVALID', usageText(error))
  const text = error instanceof Error ? error.message : String(error)
  return new TunnelError('INTERNAL', `${argv[0] ?? 'localtunnels'}: ${text}.`, { cause: error })
}

/** Commander says `error: unknown option '--prot'`, line break, `(Did you mean --port?)`. */
function usageText(error: CommanderError): string {
  // What is left of a command that only has commands below it.
  if (error.code === 'commander.help') return 'A command is missing: check or schema.'
  const [what = '', ...hints] = error.message.replace(/^error: /, '').split('\n')
  const hint = hints.join(' ').replace(/^\(|\)$/g, '')
  return `${what[0]?.toUpperCase()}${what.slice(1).replace(/\.$/, '')}. ${hint}`.trim()
}

/** As the user of a command says it: its flags instead of `tlsPort` and `idleTimeoutMs`, and where the documentation is. */
function inUsersWords(message: string, command: Command): string {
  let text = withPages(message)
  for (const option of command.options) {
    const name = option.attributeName()
    // Already beside its flag, for programs.
    text = text.replaceAll(`${option.long} (${name})`, option.long ?? name)
    // One word, such as `port`, may be just a word.
    if (/[A-Z]/.test(name))
      text = text.replace(new RegExp(`\\b${name}(?:Ms|s)?\\b`, 'g'), option.long ?? name)
  }
  return text
}

function isJsonAsked(words: readonly string[]): boolean {
  const variable = words[0] === 'server' ? process.env.TUNNEL_SERVER_JSON : process.env.TUNNEL_JSON
  return words.includes('--json') || variable !== undefined
}

/** A command and all below it. */
function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}

/** Lines a second: more than a person reads, and no more than a disk takes for hours. A program gets every event. */
const TERMINAL_RATE = 30
const LOG_RATE = 1_000

function chooseOutput({ isJson, logRate }: OutputWish, out: Sink, log: Sink): Output {
  const now = () => new Date()
  const bounded = (output: Output, rate: number) =>
    rate === 0 ? output : new BoundedOutput(output, rate, isJson)
  if (isJson) return bounded(new JsonOutput(out, now), logRate ?? 0)
  if (process.stdout.isTTY && process.env.TERM !== 'dumb') {
    return bounded(new TerminalOutput(out, paletteFor(true, process.env), now), logRate ?? TERMINAL_RATE)
  }
  const plain = new PlainOutput(out, log, paletteFor(process.stderr.isTTY, process.env), now)
  return bounded(plain, logRate ?? LOG_RATE)
}

/**
 * Commander takes any value for a set flag, `0` and the empty string too, and an empty text for a given one. What
 * says no is taken out before it looks.
 */
function normaliseEnvironment(environment: NodeJS.ProcessEnv, program: Command): void {
  const options = commandsOf(program).flatMap(command => command.options)
  const flags = new Set(options.filter(option => !option.required).map(option => option.envVar))
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('TUNNEL_')) continue
    if (value === '' || (flags.has(name) && /^(?:0|no|false|off)$/i.test(value ?? '')))
      delete environment[name]
  }
}
