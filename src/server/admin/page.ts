// The page of the admin listener: one file without anything to fetch but its own API.

import { SAFE_HEADERS } from './access.ts'

/** It holds no secret: what it shows it asks the API for, with the token that the operator types. */
export async function pageAnswer(): Promise<Response> {
  const { HTML, SCRIPT_HASH, STYLE_HASH } = await import('./page-text.ts')
  const policy = [
    "default-src 'none'",
    `script-src '${SCRIPT_HASH}'`,
    `style-src '${STYLE_HASH}'`,
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return new Response(HTML, {
    headers: {
      ...SAFE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    },
  })
}
