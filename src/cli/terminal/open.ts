// Opens a URL in the browser. Why there is no library for it: docs/decisions/013-opening-a-browser.md.

import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deferred } from '../../deferred.ts'
import { messageOf, TunnelError } from '../../errors.ts'

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  // `start` would not do: it uses cmd.exe, in which `&` and `^` have a meaning.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Resolves with whether a program was found that opens the URL. Only http(s) is opened, because the server chose the URL. */
export function openInBrowser(url: string, platform: NodeJS.Platform): Promise<boolean> {
  if (!URL.canParse(url)) return Promise.resolve(false)
  const parsed = new URL(url)
  if (!/^https?:$/.test(parsed.protocol)) return Promise.resolve(false)
  return start(parsed.href, platform)
}

/**
 * Opens a secret URL. All users can see the words of commands, so the browser gets a file that only this user can
 * read, and that leads to the URL. Resolves with `false` if there is no screen. Rejects with `STORE_FAILED`.
 */
export async function openPrivately(
  url: string,
  folder: string | undefined,
  { DISPLAY, WAYLAND_DISPLAY }: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): Promise<boolean> {
  const hasScreen = platform !== 'linux' || DISPLAY !== undefined || WAYLAND_DISPLAY !== undefined
  if (!hasScreen || folder === undefined) return false
  const path = join(folder, 'open.html')
  const escaped = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  const page = `<meta http-equiv="refresh" content="0;url=${escaped}">\n`
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    rmSync(path, { force: true })
    writeFileSync(path, page, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    throw new TunnelError(
      'STORE_FAILED',
      `The page for the browser cannot be written: ${messageOf(cause)}.`,
      {
        cause,
        action: "Check the state folder's permissions, or open the link yourself.",
      },
    )
  }
  return start(path, platform)
}

function start(what: string, platform: NodeJS.Platform): Promise<boolean> {
  const { promise, resolve } = deferred<boolean>()
  const [program = 'xdg-open', ...args] = OPENERS[platform] ?? []
  const child = spawn(program, [...args, what], { stdio: 'ignore', detached: true })
  child.once('error', () => resolve(false))
  child.once('spawn', () => resolve(true))
  child.unref()
  return promise
}
