// Runs a command line: connects it to the streams and signals of the process, and ends with its exit code.

import { type Command, CommanderError } from 'commander'
import { TunnelError } from '../errors.ts'
import { createActions } from './actions.ts'
import { EXIT } from './exit-codes.ts'
import { onReaderGone } from './lost-reader.ts'
import type { OutputWish } from './output.ts'
import { type ChosenOutput, chooseOutput } from './outputs/choose.ts'
import { GatheredSink } from './outputs/gathered.ts'
import { createProgram } from './program.ts'
import type { Run } from './run.ts'
import { commandsOf, normaliseEnvironment } from './settings/environment.ts'
import { onHangup, onUpgrade, stopSignal } from './stop.ts'
import { translate } from './words.ts'

/** Runs `argv` (without the program's own name) in this process. Never returns: exits when everything is written. */
export async function main(argv: readonly string[]): Promise<void> {
  const [out, log] = [new GatheredSink(process.stdout), new GatheredSink(process.stderr)]
  const exitCode = await runCommand(argv, out, log)
  // A pipe with a slow reader still gets everything; a second Ctrl+C ends the wait.
  await Promise.all([out.written(), log.written()])
  // Timers and closing sockets must not keep a finished command alive.
  process.exit(exitCode)
}

async function runCommand(argv: readonly string[], out: GatheredSink, log: GatheredSink): Promise<number> {
  const words = translate(argv)
  let chosen: ChosenOutput | undefined
  const flush = () => {
    out.flush()
    log.flush()
  }
  const stop = stopSignal(exitCode => {
    chosen?.output.close()
    flush()
    process.exit(exitCode)
  })
  let hasServed = false
  const served = () => {
    hasServed = true
  }
  let unwritten: NodeJS.ErrnoException | undefined
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of stdout has left, as `head` does, so no output is needed any more: a clean end.
    if (!NO_SPACE.has(error.code ?? '')) return stop.abort()
    // A tunnel continues without its output.
    unwritten = error
  })
  process.stderr.on('error', () => {})
  const start = async (wish: OutputWish): Promise<Run> => {
    chosen = await chooseOutput(wish, out, log)
    const { output, reportRate } = chosen
    onReaderGone(() => stop.abort())
    const terminal = process.stdout.isTTY ? (sequence: string) => out.write(sequence) : undefined
    const ends = { stop: stop.signal, served, onHangup, onUpgrade }
    return { output, reportRate, ...ends, environment: process.env, terminal }
  }
  let exitCode: number = EXIT.ok
  const program = await createProgram(
    createActions({
      start,
      write: text => out.write(text),
      log: text => log.write(text),
      stop: stop.signal,
      ended: code => {
        exitCode = code
      },
    }),
    words,
  )
  let command: Command = program
  program.hook('preAction', (_, one) => {
    command = one
  })
  normaliseEnvironment(process.env, program)
  for (const one of commandsOf(program)) {
    // fail() prints the error, in one line.
    const writeOut = (text: string) => out.write(text)
    one
      .exitOverride()
      .showSuggestionAfterError(false)
      .configureOutput({ writeOut, outputError: () => {}, writeErr: () => {} })
  }
  try {
    await program.parseAsync(words, { from: 'user' })
    if (chosen !== undefined && !hasServed && stop.signal.reason === 'SIGINT') exitCode = EXIT.interrupted
  } catch (error) {
    // Commander also ends printed help with an error.
    if (!(error instanceof CommanderError) || error.exitCode !== 0) {
      // A program that reads events gets this one too, however early it comes.
      if (isJsonAsked(words)) chosen ??= await chooseOutput(JSON_WISH, out, log)
      const { fail } = await import('./failure.ts')
      exitCode = fail(error, { chosen, log, words, command })
    }
  }
  chosen?.output.close()
  await out.written()
  // The stream's error comes after the write's own.
  await new Promise(resolve => setImmediate(resolve))
  if (unwritten !== undefined && exitCode === EXIT.ok) {
    const cause = `Not all of standard output could be written (${unwritten.code}).`
    const { fail } = await import('./failure.ts')
    exitCode = fail(
      new TunnelError('STORE_FAILED', cause, {
        action: 'Free some space on the disk, and run the command again.',
      }),
      { chosen: undefined, log, words, command },
    )
  }
  flush()
  return exitCode
}

const JSON_WISH: OutputWish = { isJson: true, logRate: undefined, isQuiet: false }

const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

function isJsonAsked(words: readonly string[]): boolean {
  const variable = words[0] === 'server' ? process.env.TUNNEL_SERVER_JSON : process.env.TUNNEL_JSON
  return words.includes('--json') || variable !== undefined
}
