// The page of the inspector, when the package has one.

/** One file, and what it may do. */
export interface InspectorPage {
  readonly html: string
  /** Content-Security-Policy: nothing but its own script and style, by their hashes, and its own API. */
  readonly policy: string
}

/** `undefined`: this build has no page. */
export async function loadPage(): Promise<InspectorPage | undefined> {
  return undefined
}
