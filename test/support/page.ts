// A page of a dev server in a browser: what it shows, and whether it was loaded again.

import type { Browser } from './browser.ts'

/** What an element shows; `undefined` as text: there is none. */
export function textOf(browser: Browser, what: string): Promise<string> {
  return browser.run(`document.querySelector('${what}')?.textContent`)
}

/** Waits until an element shows a text: of a page that hears of changes itself. */
export async function shows(browser: Browser, what: string, text: string): Promise<void> {
  while ((await textOf(browser, what)) !== text) await Bun.sleep(10)
}

/** A change that the page has to hear of. It is written again while its WebSocket may still be opening: nothing tells when that is done. */
export async function changes(
  browser: Browser,
  what: string,
  text: string,
  write: () => Promise<void>,
): Promise<void> {
  for (let look = 0; (await textOf(browser, what)) !== text; look++) {
    if (look % 100 === 0) await write()
    await Bun.sleep(20)
  }
}

/** Waits until the dev server answers: the first answer is compiled, which may take longer than a browser is waited for. */
export async function compiled(port: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://localhost:${port}/`).catch(() => undefined)
    if (answer?.ok) return
    await Bun.sleep(10)
  }
}

/** Marks the page; `isMarked` as long as it was not loaded again. */
export async function mark(browser: Browser): Promise<void> {
  await browser.run('window.marked = true')
}

export async function isMarked(browser: Browser): Promise<boolean> {
  return (await browser.run('String(window.marked)')) === 'true'
}
