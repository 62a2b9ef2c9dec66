// Opens a URL in the browser. Why there is no library for it: docs/decisions/013-opening-a-browser.md.

import { spawn } from 'node:child_process'
import { deferred } from '../../deferred.ts'

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  // Not `start`: that goes through cmd.exe, which gives `&` and `^` of a URL a meaning.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Resolves to whether an opener was found and took the URL. Only http(s) is opened: the server chose the URL. */
export function openInBrowser(url: string, platform: NodeJS.Platform): Promise<boolean> {
  const { promise, resolve } = deferred<boolean>()
  if (!URL.canParse(url)) return Promise.resolve(false)
  const parsed = new URL(url)
  if (!/^https?:$/.test(parsed.protocol)) return Promise.resolve(false)
  const [program = 'xdg-open', ...args] = OPENERS[platform] ?? []
  const child = spawn(program, [...args, parsed.href], { stdio: 'ignore', detached: true })
  child.once('error', () => resolve(false))
  child.once('spawn', () => resolve(true))
  child.unref()
  return promise
}
