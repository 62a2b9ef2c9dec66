// Shows a public URL as a QR code, copies it, and opens it in the browser, for flags and for keys.

import type { Run } from '../run.ts'

export async function showQr(url: string, { output }: Run): Promise<void> {
  const { renderUnicodeCompact } = await import('uqr')
  output.block(`${renderUnicodeCompact(url).replaceAll(/^/gm, '  ')}\n`)
}

export async function copyUrl(url: string, { output, terminal, environment }: Run): Promise<void> {
  const notice = (code: string, message: string) => output.event({ type: 'notice', code, message })
  const { clipboardSequence, copyWithTool } = await import('../terminal/clipboard.ts')
  terminal?.(clipboardSequence(url))
  if (await copyWithTool(url, process.platform, environment)) notice('COPIED', 'copied to the clipboard')
  else if (terminal !== undefined) notice('COPIED', 'asked the terminal to copy the URL')
  else
    notice(
      'COPY_FAILED',
      'The URL was not copied: no clipboard tool (pbcopy, wl-copy, xclip, clip) was found.',
    )
}

export async function openUrl(url: string, { output }: Run): Promise<void> {
  const { openInBrowser } = await import('../terminal/open.ts')
  if (await openInBrowser(url, process.platform)) return
  const message = 'The browser was not opened: no program to open a URL (xdg-open) was found.'
  output.event({ type: 'notice', code: 'OPEN_FAILED', message })
}
