// What guards answer themselves: JSON for programs, small pages with a form for people.

import { createHash } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { errorJson, escapeHtml, PAGE_STYLE } from '../http/pages.ts'
import type { HeaderLine, Refusal } from '../plugin.ts'
import { isNavigation, type Offer, type Request } from './way.ts'

const STYLE = `${PAGE_STYLE}
form{display:grid;gap:.75rem;margin:1.5rem 0}
input,button,a{font:inherit;padding:.6rem .75rem;border:1px solid var(--soft);border-radius:.4rem;background:transparent;color:inherit}
a{display:block;margin:0 0 .75rem;text-align:center;text-decoration:none;overflow-wrap:anywhere}
button{background:var(--ink);color:var(--paper);cursor:pointer;border-color:var(--ink)}
:focus-visible{outline:2px solid var(--mark);outline-offset:2px}
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
// No form-action: Chromium holds all that a form is redirected to against it, and apps send their visitors on to other sites.
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`

/** What every answer of a guard has. */
const SHARED: readonly HeaderLine[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  // Not "no-referrer": browsers would send forms of these pages with "Origin: null".
  ['referrer-policy', 'same-origin'],
]

/** A refusal for programs. */
export function refusedWithJson(code: ErrorCode, headers: readonly HeaderLine[] = []): Refusal {
  return {
    code,
    headers: [
      ['content-type', 'application/json; charset=utf-8'],
      ['content-security-policy', "default-src 'none'"],
      ...SHARED,
      ...headers,
    ],
    body: errorJson(code),
  }
}

/** A page where a browser shows one, else JSON. */
export function refusedAs(
  code: ErrorCode,
  visitor: Request,
  headers: readonly HeaderLine[] = [],
  reason?: string,
): Refusal {
  const refusal = isNavigation(visitor) ? { code, headers } : refusedWithJson(code, headers)
  return reason === undefined ? refusal : { ...refusal, reason }
}

export interface Form {
  readonly title: string
  readonly text: string
  /** What went wrong the last time. */
  readonly warning?: string | undefined
  /** Path that the form is sent to; left out: there is no form. */
  readonly action?: string
  readonly hidden?: Readonly<Record<string, string>>
  readonly hasPassword?: boolean
  readonly button?: string
  /** Other ways than this form. */
  readonly offers?: readonly Offer[]
  readonly host: string
}

/** A page with a form; with a `code` it says why the visitor sees it instead of the app. */
export function formPage(form: Form, code?: ErrorCode, headers: readonly HeaderLine[] = []): Refusal {
  const hidden = Object.entries(form.hidden ?? {})
    .map(([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`)
    .join('')
  const password = form.hasPassword
    ? `<label for="p">Password</label><input id="p" type="password" name="password" autocomplete="current-password" required autofocus maxlength="256"${form.warning === undefined ? '' : ' aria-describedby="w"'}>`
    : ''
  const warning =
    form.warning === undefined ? '' : `<p class="todo" role="alert" id="w">${escapeHtml(form.warning)}</p>`
  const offers = (form.offers ?? []).map(
    ({ text, href }) => `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>\n`,
  )
  const fields =
    form.action === undefined
      ? ''
      : `<form method="post" action="${escapeHtml(form.action)}">${hidden}${password}<button>${escapeHtml(form.button ?? '')}</button></form>
`
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(form.title)}</title>
<style>${STYLE}</style>
<main>
<h1>${escapeHtml(form.title)}</h1>
<p>${escapeHtml(form.text)}</p>
${warning}
${fields}${offers.join('')}<footer>${escapeHtml(form.host)} · asked by localtunnels, not by the app</footer>
</main>
</html>
`
  return {
    ...(code && { code }),
    status: code === undefined ? 200 : ERRORS[code].status,
    headers: [
      ['content-type', 'text/html; charset=utf-8'],
      ['content-security-policy', POLICY],
      ...SHARED,
      ...headers,
    ],
    body,
  }
}

/** Sends the visitor on with GET. `to` is a path of this host, or a URL that the operator set up. */
export function redirected(to: string, headers: readonly HeaderLine[] = []): Refusal {
  return { status: 303, headers: [['location', to], ...SHARED, ...headers], body: '' }
}

/** The fields of a form, as browsers send them. */
export function fieldsOf(body: Uint8Array): URLSearchParams {
  return new URLSearchParams(new TextDecoder().decode(body))
}
