// Reads a secret: from a terminal without showing it, or from a pipe.

import { deferred } from '../../deferred.ts'
import { optionInvalid } from '../../errors.ts'

/** The maximum length of a token. A longer text may be a file given by mistake. */
const MAX_LENGTH = 4_096

/** The used members of this process's input. */
export type Input = Pick<NodeJS.ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'pause' | 'resume'>

/** Returns the first line of a pipe, without blanks around it. */
export async function readLine(input: Input): Promise<string> {
  const [line = ''] = (await readUntil(input, text => text.indexOf('\n'))).split('\n')
  return line.trim()
}

/** Returns the line that the user types. `undefined` after Ctrl+C or Ctrl+D. */
export async function askSecret(
  input: Input,
  prompt: (text: string) => void,
  question: string,
): Promise<string | undefined> {
  // The terminal then shows nothing, and Ctrl+C is a character. Before the question, because the response may come at once.
  input.setRawMode(true)
  prompt(question)
  try {
    const typed = await readUntil(input, endOf)
    const at = endOf(typed)
    return RETURNS.has(typed.charAt(at)) ? edited(typed.slice(0, at)).trim() : undefined
  } finally {
    input.setRawMode(false)
    prompt('\n')
  }
}

const RETURNS: ReadonlySet<string> = new Set(['\r', '\n'])
/** The keys Ctrl+C and Ctrl+D. */
const CANCELS: ReadonlySet<string> = new Set(['\x03', '\x04'])

/** Returns the position where the line ends or is cancelled; -1 before that. */
function endOf(typed: string): number {
  return typed.split('').findIndex(character => RETURNS.has(character) || CANCELS.has(character))
}

/** Applies editing keys: Backspace removes the last character, Ctrl+U the whole line. */
function edited(typed: string): string {
  let text = ''
  for (const character of typed) {
    if (character === '\x7f' || character === '\b') text = text.slice(0, -1)
    else if (character === '\x15') text = ''
    else text += character
  }
  return text
}

/** Reads until the input ends, or `find` returns a position. */
async function readUntil(input: Input, find: (text: string) => number): Promise<string> {
  const { promise, resolve, reject } = deferred<string>()
  const decoder = new TextDecoder()
  let text = ''
  const received = (bytes: Uint8Array) => {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > MAX_LENGTH) reject(optionInvalid('The input is too long for a token.'))
    else if (find(text) >= 0) resolve(text)
  }
  const ended = () => resolve(text)
  input.on('data', received)
  input.on('end', ended)
  input.on('error', ended)
  input.resume()
  try {
    return await promise
  } finally {
    input.off('data', received)
    input.off('end', ended)
    input.off('error', ended)
    input.pause()
  }
}
