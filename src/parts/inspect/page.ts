// The page of the inspector: one file that only uses its own API.

/** The page as one file, with its policy. */
export interface InspectorPage {
  readonly html: string
  /** The Content-Security-Policy: only its own script and style, by their hashes, and its own API. */
  readonly policy: string
}

export async function loadPage(): Promise<InspectorPage> {
  const { builtPage } = await import('../../http/built-page.ts')
  const { html, scriptHash, styleHash } = await builtPage('inspector')
  const policy = [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    `style-src '${styleHash}'`,
    "connect-src 'self'",
    // Captured images, and the favicon of the page.
    'img-src blob: data:',
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return { html, policy }
}
