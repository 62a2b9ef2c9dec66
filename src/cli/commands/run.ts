// `localtunnels run -- <command>`: reserves a URL, starts the command with it, and then finds the port that the command opens.

import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { TunnelClientOptions } from '../../client/options.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { stateFolder } from '../../state-folder.ts'
import { createClient, type ServerEnd } from '../ends.ts'
import { EXIT } from '../exit-codes.ts'
import { notify } from '../notify.ts'
import { type Destination, serverOption } from '../settings/destination.ts'
import { startEmbeddedServer } from '../sharing/embedded-server.ts'
import { familyOf, listeningPorts } from '../sharing/listening-ports.ts'
import { accepts } from '../sharing/origin-watch.ts'
import { onEnd } from '../sharing/patience.ts'
import { reachLine } from '../sharing/reach.ts'
import { explainRefusals } from '../sharing/refused-host.ts'
import { describe } from '../sharing/report.ts'
import { aborted } from '../stop.ts'
import { visible } from '../terminal/format.ts'

export interface RunSettings {
  readonly command: readonly [string, ...string[]]
  readonly destination: Destination
  readonly client: Omit<
    TunnelClientOptions,
    'server' | 'token' | 'port' | 'host' | 'url' | 'unix' | 'fetch' | 'folder'
  >
  readonly port: number | undefined
  /** Whether the command must not start without a tunnel. */
  readonly isRequired: boolean
}

export interface RunStage {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly stop: AbortSignal
  /** Prints one line for the user, next to the output of the command. */
  say(this: void, line: string): void
}

/** The time in milliseconds between searches for new ports. */
const LOOK_MS = 150
const LOOK_AGAIN_MS = 1_000
/** The time in milliseconds between SIGTERM and SIGKILL to the command. */
const KILL_AFTER_MS = 10_000

/** Runs the command. Resolves with its exit code. */
export async function runCommand(settings: RunSettings, stage: RunStage): Promise<number> {
  const lost = new AbortController()
  const reservation = await reserveFor(settings, stage, lost)
  if (stage.stop.aborted) {
    // The command was not started yet.
    await reservation?.close()
    return EXIT.interrupted
  }
  try {
    const stop = AbortSignal.any([stage.stop, lost.signal])
    const code = await runWith(settings, reservation, { ...stage, stop })
    if (lost.signal.aborted && !stage.stop.aborted) throw lost.signal.reason
    return code
  } finally {
    await reservation?.close()
  }
}

interface Reservation {
  readonly url: string
  forward(port: number): void
  close(): Promise<void>
}

/**
 * Reserves a tunnel. `undefined` if there is none; a line has said why, and the command runs without one. Aborts
 * `lost` if a lost connection must end the command.
 */
async function reserveFor(
  settings: RunSettings,
  stage: RunStage,
  lost: AbortController,
): Promise<Reservation | undefined> {
  const { destination, client: options, isRequired } = settings
  let embedded: ServerEnd | undefined
  try {
    const server = serverOption(destination, options.ca)
    if (server === undefined) embedded = await startEmbeddedServer()
    const state = embedded === undefined ? stateFolder(stage.environment) : undefined
    const client = await createClient({
      ...options,
      later: true,
      token: '',
      server: server ?? `http://127.0.0.1:${embedded?.port}`,
      ...(state !== undefined && { stateFolder: state }),
      ...(embedded !== undefined && { proxy: false }),
    })
    client.on('reconnecting', ({ attempt }) => {
      if (attempt === 1) stage.say('connection lost, reconnecting')
    })
    client.on('connected', ({ url }) => stage.say(url))
    onEnd(client, error => {
      if (error instanceof TunnelError && error.code === 'DISCONNECTED') lost.abort(error)
    })
    client.on('reach', reach => stage.say(reachLine(reach)))
    client.on('error', error => {
      const { code, message } = describe(error)
      // Visitors that come before the app see the error in their browser.
      if (!code.startsWith('ORIGIN_')) stage.say(`${code}: ${message}`)
    })
    let port: number | undefined
    const origin = () => (port === undefined ? undefined : `http://localhost:${port}`)
    if (options.hostHeader === undefined) explainRefusals(client, origin, stage.say)
    await Promise.race([client.connect(), aborted(stage.stop)])
    if (stage.stop.aborted) await client.disconnect()
    return {
      url: client.getTunnelUrl(),
      forward(to) {
        port = to
        client.forward(to)
      },
      close: async () => {
        await client.close()
        await embedded?.stop()
      },
    }
  } catch (error) {
    await embedded?.stop()
    // A mistake on the command line ends the run.
    if (isRequired || !(error instanceof TunnelError) || error.code === 'OPTION_INVALID') throw error
    stage.say(
      `${error.code}: ${error.message} The command runs without a public URL; --required prevents that.`,
    )
    return undefined
  }
}

async function runWith(
  { command, port }: RunSettings,
  reservation: Reservation | undefined,
  { environment, stop, say }: RunStage,
): Promise<number> {
  const { spawn } = await import('node:child_process')
  const [program, ...args] = command
  const isTerminal = process.stdin.isTTY || process.platform === 'win32'
  const child = spawn(program, args, {
    stdio: 'inherit',
    // The supervisor listens to this program, not to its child processes.
    env: {
      ...environment,
      NOTIFY_SOCKET: undefined,
      ...(reservation && variables(reservation.url, port, environment)),
    },
    // Children of the command end with it, because a signal goes to the whole group. A command that reads from a
    // terminal must stay in our group.
    detached: !isTerminal,
    // Windows finds npm.cmd only with its shell.
    shell: process.platform === 'win32',
  })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', error => reject(notStarted(program, error)))
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
  const isOver = { now: false }
  void ended.then(
    () => (isOver.now = true),
    () => (isOver.now = true),
  )
  let killing: ReturnType<typeof setTimeout> | undefined
  notify(`READY=1\nSTATUS=${reservation?.url ?? 'No tunnel'}`, environment)
  const passOn = () => {
    notify('STOPPING=1', environment)
    // The terminal has already sent Ctrl+C to the command, as to every process of the group. Other signals came only
    // to this process.
    if (!isTerminal || stop.reason !== 'SIGINT') signalTo(child, !isTerminal, 'SIGTERM')
    killing = setTimeout(kill, KILL_AFTER_MS)
  }
  // A second Ctrl+C ends everything at once.
  const kill = () => (isTerminal ? killFamily(child) : signalTo(child, true, 'SIGKILL'))
  process.once('exit', kill)
  stop.addEventListener('abort', passOn, { once: true })
  if (stop.aborted) passOn()
  const endWatch = child.pid === undefined ? () => {} : endWithUs(isTerminal ? child.pid : -child.pid)
  if (reservation !== undefined && child.pid !== undefined)
    void follow(child.pid, port, reservation, isOver, say)
  try {
    const code = await ended
    if (code !== 0 && !stop.aborted) say(`${visible(program)} ended with exit code ${code}`)
    return code
  } finally {
    clearTimeout(killing)
    endWatch()
    process.off('exit', kill)
    // Ends the processes that the command left in the background. On a terminal they stay, as with a shell.
    if (!isTerminal) signalTo(child, true, 'SIGTERM')
    stop.removeEventListener('abort', passOn)
  }
}

/** Returns the variables for the command. Variables that the user has set stay. */
function variables(
  url: string,
  port: number | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const { hostname } = new URL(url)
  const wished = {
    PUBLIC_URL: url,
    // Vite: additional hosts that its dev server accepts.
    __VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS: hostname,
    // Rails: the same.
    RAILS_DEVELOPMENT_HOSTS: hostname,
    ...(port !== undefined && { PORT: `${port}` }),
  }
  return Object.fromEntries(Object.entries(wished).filter(([name]) => environment[name] === undefined))
}

/** Sends visitors to the port that the command opens, and to another one if it opens another later. */
async function follow(
  pid: number,
  wished: number | undefined,
  reservation: Reservation,
  isOver: { readonly now: boolean },
  say: RunStage['say'],
): Promise<void> {
  let current: number | undefined
  let saidOthers = ''
  while (!isOver.now) {
    const ports = await listeningPorts(pid)
    const found = await choose(ports, wished, current)
    if (found !== undefined && found !== current) {
      current = found
      reservation.forward(found)
      say(`${reservation.url} → localhost:${found}`)
    }
    // The port of the app may be one that opens later.
    const others =
      current === undefined || wished !== undefined ? '' : ports.filter(one => one !== current).join(', ')
    if (others !== saidOthers && others !== '') say(`also open: ${others}; --port chooses`)
    saidOthers = others
    await new Promise(resolve => setTimeout(resolve, current === undefined ? LOOK_MS : LOOK_AGAIN_MS).unref())
  }
}

/** Returns the current port if it still listens; otherwise the lowest that accepts connections on this machine. */
async function choose(
  ports: readonly number[],
  wished: number | undefined,
  current: number | undefined,
): Promise<number | undefined> {
  if (current !== undefined && ports.includes(current)) return current
  for (const port of wished === undefined ? ports : ports.filter(one => one === wished))
    if (await accepts({ host: 'localhost', port })) return port
  return undefined
}

type Signal = 'SIGTERM' | 'SIGKILL'

/** Sends a signal to the command and its children, if it has a process group of its own. */
function signalTo(child: ChildProcess, isGroup: boolean, signal: Signal): void {
  if (child.pid === undefined) return
  try {
    process.kill(isGroup ? -child.pid : child.pid, signal)
  } catch {
    // The command has ended.
  }
}

/** Kills each process separately, because a signal to our own group would also reach this process. */
function killFamily(child: ChildProcess): void {
  if (child.pid === undefined) return
  const family = process.platform === 'linux' ? familyOf(child.pid) : [child.pid]
  for (const pid of family) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // The command has ended.
    }
  }
}

function notStarted(program: string, error: NodeJS.ErrnoException): TunnelError {
  const why = error.code === 'ENOENT' ? 'there is no such program' : error.message
  return optionInvalid(`${visible(program)} cannot be run: ${why}.`, { cause: error })
}

/** The time from SIGTERM to SIGKILL, in seconds. */
const KILL_AFTER_S = 10
/** The script. Its standard input ends with the process at the other end. */
const SCRIPT = `read -r _; kill -s TERM -- "$1" && sleep ${KILL_AFTER_S} && kill -s KILL -- "$1"`

/**
 * Ends a process, or a process group if negative, together with this program. Returns a function that ends the watch.
 * Does nothing on Windows.
 */
function endWithUs(target: number): () => void {
  if (process.platform === 'win32') return () => {}
  // Has a group of its own, so that signals to ours do not reach it.
  const watch = spawn('sh', ['-c', SCRIPT, 'sh', `${target}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  // The command also runs if there is no `sh`.
  watch.once('error', () => {})
  watch.unref()
  return () => void watch.kill('SIGKILL')
}
