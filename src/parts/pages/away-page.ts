// The page for visitors while an app or its client is away, in the form for the wire.

/** The maximum length of the text, in bytes of UTF-8. With its escapes and the rest of a registration it fits in one frame. */
export const MAX_PAGE_BYTES = 32_768

export const PAGE_TYPES = ['text/html', 'text/plain', 'application/json'] as const

export interface AwayPage {
  readonly type: (typeof PAGE_TYPES)[number]
  readonly text: string
  /** The status. Default: that of the code. */
  readonly status?: number
}

/** Whether a response with this status has a body and is not a redirect, which only an app that is there would send. */
export function isPageStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status === 200 || (Number(status) >= 400 && Number(status) <= 599))
}

/** Returns the page. `undefined` if a server would not accept it. */
export function awayPageOf(given: unknown): AwayPage | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const { type, text, status, ...rest }: Partial<Record<string, unknown>> = { ...given }
  const known = PAGE_TYPES.find(one => one === type)
  const isText = typeof text === 'string' && text.isWellFormed() && Buffer.byteLength(text) <= MAX_PAGE_BYTES
  if (known === undefined || !isText || Object.keys(rest).length > 0) return undefined
  if (status === undefined) return { type: known, text }
  return isPageStatus(status) ? { type: known, text, status } : undefined
}
