// Apps that expect a name of their own, as a part of a server.

import { isRewriteTerms } from '../../paths/rewriting.ts'
import type { Install } from '../../server/contracts/part.ts'
import { RewritingUpstream } from './upstream.ts'

export const installRewriting: Install = () => ({
  name: 'rewriting',
  wishes: {
    rewriting: wish => (isRewriteTerms(wish) ? undefined : 'rewriting has a value that cannot be used.'),
  },
  before: (upstream, { rewriting }) =>
    isRewriteTerms(rewriting) ? new RewritingUpstream(upstream, rewriting) : upstream,
})
