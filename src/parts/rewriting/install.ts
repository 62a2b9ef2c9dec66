// Apps that expect a name of their own, as a part of a server.

import type { Install } from '../../server/contracts/part.ts'
import { RewritingUpstream } from './upstream.ts'

export const installRewriting: Install = () => ({
  name: 'rewriting',
  rewriting: (upstream, { hostHeader, rewrite }) =>
    rewrite === undefined
      ? upstream
      : new RewritingUpstream(upstream, { ...rewrite, ...(hostHeader !== undefined && { hostHeader }) }),
})
