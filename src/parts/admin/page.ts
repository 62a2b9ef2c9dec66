// The page of the admin listener: one file that only uses its own API.

import { SAFE_HEADERS } from './access.ts'

/** Returns the page, which contains no secret: it calls the API with the token that the operator enters. */
export async function pageAnswer(): Promise<Response> {
  const { builtPage } = await import('../../http/built-page.ts')
  const { html, scriptHash, styleHash } = await builtPage('admin')
  const policy = [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    `style-src '${styleHash}'`,
    "connect-src 'self'",
    // The favicon of the page.
    'img-src data:',
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return new Response(html, {
    headers: {
      ...SAFE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    },
  })
}
