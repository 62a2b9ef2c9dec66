// Copies text to the clipboard of the user at the terminal.

import { spawn } from 'node:child_process'
import { deferred } from '../../deferred.ts'

const TOOLS: Readonly<Partial<Record<NodeJS.Platform, readonly (readonly string[])[]>>> = {
  darwin: [['pbcopy']],
  win32: [['clip']],
  linux: [['wl-copy'], ['xclip', '-selection', 'clipboard'], ['xsel', '-ib']],
}
const TOOL_TIMEOUT_MS = 2_000

/** Returns OSC 52, with which the terminal itself copies, also over ssh and in containers. Terminals do not report success. */
export function clipboardSequence(text: string): string {
  return `\x1b]52;c;${Buffer.from(text).toString('base64')}\x07`
}

/**
 * Runs the first clipboard tool that works. Resolves with `false` if there is none, or it would use the clipboard of
 * a remote machine.
 */
export async function copyWithTool(
  text: string,
  platform: NodeJS.Platform,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  if (environment.SSH_CONNECTION) return false
  for (const command of TOOLS[platform] ?? []) {
    if (await feed(command, text)) return true
  }
  return false
}

function feed([program, ...args]: readonly string[], text: string): Promise<boolean> {
  const { promise, resolve } = deferred<boolean>()
  const child = spawn(program ?? '', args, { stdio: ['pipe', 'ignore', 'ignore'], timeout: TOOL_TIMEOUT_MS })
  child.once('error', () => resolve(false))
  // xclip and wl-copy leave a process in the background with the selection; the started one ends.
  child.once('exit', status => resolve(status === 0))
  // The tool ended without reading. Its exit status shows whether it worked.
  child.stdin.once('error', () => {})
  child.stdin.end(text)
  return promise
}
