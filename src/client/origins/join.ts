// Dials the origin for a stream that the server opened, and joins the two.

import { TunnelError } from '../../errors.ts'
import { Join } from '../../join.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import { isServersProbe } from '../reach/probe.ts'
import type { Origin } from './origin.ts'

/**
 * Dials the origin for a stream. Bytes of the server wait during the dial, bounded by the stream's initial credit.
 * `failed` is called with the reason if the origin cannot be reached for a visitor, and with errors of a `fetch`
 * handler. `probeProof` marks the server's own probes, whose failures only the operator sees.
 */
export function join(
  stream: ByteStream,
  origin: Origin,
  isRaw: boolean,
  probeProof: string,
  failed: (error: TunnelError) => void,
): StreamHandler {
  const joined = new Join('ORIGIN_CLOSED', isRaw, error => {
    if (error instanceof TunnelError) failed(error)
  })
  joined.useStream(stream)
  origin.connect(joined.socketHandler).then(
    socket => joined.useSocket(socket),
    (cause: unknown) => {
      // The server has reset the stream: a server that opens and resets many must not flood the listeners.
      if (joined.isOver) return
      const error =
        cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause })
      const isProbe = isServersProbe(joined.firstUnsent, probeProof)
      joined.fail(error.code)
      if (!isProbe) failed(error)
    },
  )
  return joined
}

/** Returns the origin with a limit: with `maxDials` in progress, a stream is refused with `TUNNEL_BUSY` without a dial. */
export function bounded(origin: Origin, maxDials: number): Origin {
  let dials = 0
  return {
    label: origin.label,
    url: origin.url,
    async connect(handler) {
      if (dials >= maxDials) throw new TunnelError('TUNNEL_BUSY')
      dials++
      try {
        return await origin.connect(handler)
      } finally {
        dials--
      }
    },
  }
}
