// Asks again and again whether visitors reach the tunnel: a proxy or a firewall in front of the server may change while both ends are well.

/** What it watches, and whom it tells. */
export interface PublicWatchRoom {
  /** Whether the client reaches itself through its public URL; `undefined`: it cannot be told. */
  probe(): Promise<boolean | undefined>
  /** The connection to the server is up: without it there is nothing to prove, and the user knows. */
  isConnected(): boolean
  told(code: 'UNPROVEN' | 'PROVEN'): void
}

/** One request a minute is nothing, and a minute is soon enough for a user who waits for a visitor. */
export const PUBLIC_WATCH_MS = 60_000
/** In a row: one that is lost says nothing. */
const FAILURES = 2

/** Returns what ends it. */
export function watchPublicSide(room: PublicWatchRoom, everyMs: number = PUBLIC_WATCH_MS): () => void {
  let failures = 0
  let isAsking = false
  const ask = async (): Promise<void> => {
    if (isAsking || !room.isConnected()) return
    isAsking = true
    const isProven = await room.probe().catch(() => false)
    isAsking = false
    if (isProven === undefined || !room.isConnected()) return
    if (isProven) {
      if (failures >= FAILURES) room.told('PROVEN')
      failures = 0
    } else if (++failures === FAILURES) room.told('UNPROVEN')
  }
  const timer = setInterval(() => void ask(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
