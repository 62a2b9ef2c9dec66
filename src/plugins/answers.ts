// The responses of guards: JSON for programs, small pages with a form for people.

import { ERRORS, type ErrorCode } from '../errors.ts'
import { errorJson } from '../http/error-answer.ts'
import { escapeHtml, PAGE_POLICY, shell } from '../http/pages.ts'
import type { HeaderLine, Refusal } from '../plugin.ts'
import { isNavigation, type Offer, type Request } from './way.ts'

/** The header lines of every response of a guard. */
const SHARED: readonly HeaderLine[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  // "no-referrer" would not do: browsers would send these forms with "Origin: null".
  ['referrer-policy', 'same-origin'],
]

/** Returns a refusal for programs. */
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

/** Returns a page if a browser would show one, otherwise JSON. */
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
  /** The failure of the previous attempt. */
  readonly warning?: string | undefined
  /** The path that the form is sent to. Absent if there is no form. */
  readonly action?: string
  readonly hidden?: Readonly<Record<string, string>>
  readonly hasPassword?: boolean
  readonly button?: string
  /** The other sign-in methods. */
  readonly offers?: readonly Offer[]
  readonly visitor: Request
}

/** The mark: a door with a lock. */
const DOOR =
  '<svg class="art" width="48" height="48" viewBox="0 0 48 48" aria-hidden="true"><path class="arch" d="M6 45V24a18 18 0 0 1 36 0v21"/><path class="light" fill-rule="evenodd" d="M21 45V28.500a7.500 7.500 0 0 1 15 0V45zM28.500 32.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 1 0 0-5z"/></svg>'

/** Returns a page with a form. With a `code`, it says why the visitor sees it in place of the app. */
export function formPage(form: Form, code?: ErrorCode, headers: readonly HeaderLine[] = []): Refusal {
  const hidden = Object.entries(form.hidden ?? {})
    .map(([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`)
    .join('')
  const invalid = form.warning === undefined ? '' : ' aria-invalid="true" aria-describedby="w"'
  const password = form.hasPassword
    ? `<label for="p">Password</label><input id="p" type="password" name="password" autocomplete="current-password" required autofocus maxlength="256"${invalid}>`
    : ''
  const warning =
    form.warning === undefined ? '' : `<p class="fault" role="alert" id="w">${escapeHtml(form.warning)}</p>`
  const offers = (form.offers ?? []).map(
    ({ text, href }) => `<a class="offer" href="${escapeHtml(href)}">${escapeHtml(text)}</a>`,
  )
  const fields =
    form.action === undefined
      ? warning
      : `<form method="post" action="${escapeHtml(form.action)}">${hidden}${password}${warning}<button>${escapeHtml(form.button ?? '')}</button></form>`
  const or = form.action === undefined || offers.length === 0 ? '' : '<p class="or">or</p>'
  const body = shell(
    form.title,
    `${DOOR}
<h1>${escapeHtml(form.title)}</h1>
<p>${escapeHtml(form.text)}</p>
${fields}${or}${offers.join('')}`,
    { host: form.visitor.head.host, branding: form.visitor.branding },
  )
  return {
    ...(code && { code }),
    status: code === undefined ? 200 : ERRORS[code].status,
    headers: [
      ['content-type', 'text/html; charset=utf-8'],
      // Without form-action: Chromium applies it to all redirects after a form, and apps redirect visitors to other sites.
      ['content-security-policy', PAGE_POLICY],
      ...SHARED,
      ...headers,
    ],
    body,
  }
}

/** Redirects the visitor with GET. `to` is a path of this host, or a URL that the operator set. */
export function redirected(to: string, headers: readonly HeaderLine[] = []): Refusal {
  return { status: 303, headers: [['location', to], ...SHARED, ...headers], body: '' }
}

/** Returns the fields of a form, as browsers send them. */
export function fieldsOf(body: Uint8Array): URLSearchParams {
  return new URLSearchParams(new TextDecoder().decode(body))
}
