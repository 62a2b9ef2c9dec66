// The keys of a command on a terminal: one press each, without Enter. Ctrl+C, Ctrl+Z and Ctrl+\ work as in every
// program, and a background job leaves the terminal to the shell.

import { readFileSync } from 'node:fs'

export type Keys = Readonly<Record<string, () => void>>

export type KeyInput = Pick<
  NodeJS.ReadStream,
  'isTTY' | 'setRawMode' | 'on' | 'off' | 'pause' | 'resume' | 'unref' | 'ref'
>

/** The signals that the terminal itself would send, if it were not in raw mode. */
const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  '\x03': 'SIGINT',
  '\x1a': 'SIGTSTP',
  '\x1c': 'SIGQUIT',
}

/**
 * The time in milliseconds between checks whether a job is in the foreground again, because the shell does not notify
 * a running job.
 */
const FOREGROUND_CHECK_MS = 1_000

/** Listens until `stop` is aborted. Returns `false` if there is no terminal. */
export function listenForKeys(input: KeyInput, keys: Keys, stop: AbortSignal): boolean {
  if (!input.isTTY || stop.aborted || !isInForeground()) return false
  let isListening = false
  let check: ReturnType<typeof setInterval> | undefined
  const listen = () => {
    if (isListening || stop.aborted) return
    // Reading would stop a background job.
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
    // Pasted text is ignored. A signal counts anywhere in it, because other keys may come in the same read.
    const text = String(bytes)
    const signal = text.split('').flatMap(one => SIGNALS[one] ?? [])[0]
    if (signal === undefined) return text.length === 1 ? keys[text]?.() : undefined
    if (signal !== 'SIGINT') leave()
    // Signals the whole job, as the terminal does, but not other jobs, in case another process started it.
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

/** Whether this job is in the foreground. True if that is unknown. */
function isInForeground(): boolean {
  try {
    // After the name, which may contain any character: state, parent, group, session, terminal, the foreground group.
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return group === foreground
  } catch {
    return true
  }
}
