// The page of the inspector: one file without anything to fetch but its own API.

/** One file, and what it may do. */
export interface InspectorPage {
  readonly html: string
  /** Content-Security-Policy: nothing but its own script and style, by their hashes, and its own API. */
  readonly policy: string
}

export async function loadPage(): Promise<InspectorPage> {
  const { HTML, SCRIPT_HASH, STYLE_HASH } = await import('./page-text.ts')
  const policy = [
    "default-src 'none'",
    `script-src '${SCRIPT_HASH}'`,
    `style-src '${STYLE_HASH}'`,
    "connect-src 'self'",
    // Captured pictures.
    'img-src blob:',
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return { html: HTML, policy }
}
