// Which answers may be a dev server's refusal of the public host. Apart from `dev-server.ts`, which loads an HTTP client.

const REFUSALS: ReadonlySet<number> = new Set([400, 403])

/** The status and path of an answer that a visitor got. */
export interface Seen {
  readonly status: number
  readonly path: string
}

/** Whether an answer may be a refusal of the host: worth asking the app itself. */
export function looksRefused({ status }: Pick<Seen, 'status'> & Partial<Seen>): boolean {
  return REFUSALS.has(status)
}
