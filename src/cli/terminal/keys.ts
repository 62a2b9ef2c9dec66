// Keys that a command has while it runs on a terminal: one press each, without Enter. Ctrl+C, Ctrl+Z and Ctrl+\ mean what they
// mean to every program, and a job in the background leaves the terminal to the shell.

import { readFileSync } from 'node:fs'

export type Keys = Readonly<Record<string, () => void>>

export type KeyInput = Pick<
  NodeJS.ReadStream,
  'isTTY' | 'setRawMode' | 'on' | 'off' | 'pause' | 'resume' | 'unref' | 'ref'
>

/** The signals that the terminal itself would send to its jobs, were it not in raw mode. */
const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  '\x03': 'SIGINT',
  '\x1a': 'SIGTSTP',
  '\x1c': 'SIGQUIT',
}

/** A shell says nothing to a job that runs on when it comes back from the background: it looks this often. */
const FOREGROUND_CHECK_MS = 1_000

/** Listens until `stop` is aborted. `false`: there is no terminal to listen to. */
export function listenForKeys(input: KeyInput, keys: Keys, stop: AbortSignal): boolean {
  if (!input.isTTY || stop.aborted || !isInForeground()) return false
  let isListening = false
  let check: ReturnType<typeof setInterval> | undefined
  const listen = () => {
    if (isListening || stop.aborted) return
    // A read would stop a background job.
    if (!isInForeground()) {
      check ??= setInterval(listen, FOREGROUND_CHECK_MS).unref()
      return
    }
    clearInterval(check)
    check = undefined
    isListening = true
    input.setRawMode(true)
    input.on('data', pressed)
    input.resume()
  }
  const leave = () => {
    if (!isListening) return
    isListening = false
    input.off('data', pressed)
    input.pause()
    input.setRawMode(false)
  }
  const pressed = (bytes: Uint8Array | string) => {
    // Pasted text is not meant for this. A signal counts wherever it stands: other keys may come in the same read.
    const text = String(bytes)
    const signal = text.split('').flatMap(one => SIGNALS[one] ?? [])[0]
    if (signal === undefined) return text.length === 1 ? keys[text]?.() : undefined
    if (signal !== 'SIGINT') leave()
    // The whole job, as the terminal does; not more, should another process have begun it.
    process.kill(signal === 'SIGINT' ? process.pid : 0, signal)
  }
  const end = () => {
    leave()
    clearInterval(check)
    process.off('SIGCONT', listen)
    process.off('exit', leave)
  }
  process.on('SIGCONT', listen)
  // The next program finds the terminal unchanged.
  process.on('exit', leave)
  stop.addEventListener('abort', end, { once: true })
  listen()
  return true
}

/** Whether this job has the terminal. Where that is not known it is taken to have. */
function isInForeground(): boolean {
  try {
    // Behind the name, which may hold anything: state, parent, group, session, terminal, the group that has the terminal.
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return group === foreground
  } catch {
    return true
  }
}
