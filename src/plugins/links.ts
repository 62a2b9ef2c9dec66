// A sign-in method: signed links. Each opens a path until it expires. A link that works once shows a button first.

import { LINK_PURPOSE, type LinkContent } from '../guard.ts'
import type { Reading, Refusal } from '../plugin.ts'
import { unseal } from '../seal.ts'
import { formPage, refusedAs } from './answers.ts'
import type { SessionStore } from './sessions.ts'
import { localPath, type Request, type Sessions, type Way } from './way.ts'

export class Links implements Way {
  readonly kind = 'links'
  readonly mark = 'links'
  readonly #key: string
  readonly #book: SessionStore

  constructor(key: string, book: SessionStore) {
    this.#key = key
    this.#book = book
  }

  /** Called when the visitor follows a link. */
  open(visitor: Request, sealed: string, sessions: Sessions): Refusal | Reading {
    const link = this.#read(sealed, visitor.tunnel)
    if (link === undefined) return refused(visitor)
    const { method } = visitor.head
    // Mail scanners and previews follow links, which must not use them up.
    if (link.once !== true) return method === 'GET' ? this.#enter(visitor, link, sessions) : refused(visitor)
    if (method === 'POST')
      return {
        maxBodyBytes: 1_024,
        // Checked again, because another press may have come first.
        read: () => {
          const still = this.#read(sealed, visitor.tunnel)
          return still === undefined ? refused(visitor) : this.#use(visitor, still, sessions)
        },
      }
    return formPage({
      title: 'You are invited',
      text: 'This link works once. Press the button to open the app in this browser.',
      action: visitor.head.path,
      button: 'Open',
      visitor,
    })
  }

  async #use(visitor: Request, link: LinkContent, sessions: Sessions): Promise<Refusal> {
    try {
      if (!(await this.#book.use(link.id, link.exp * 1_000))) return refused(visitor)
    } catch {
      // The link was not used up, so the visitor may press again.
      return refusedAs('CLUSTER_UNREACHABLE', visitor)
    }
    return this.#enter(visitor, link, sessions)
  }

  #enter(visitor: Request, { id, path, exp }: LinkContent, sessions: Sessions): Refusal {
    return sessions.begin(visitor, this, localPath(path), { path, link: id, endsAt: exp * 1_000 })
  }

  /** Reads a link. Other tunnels may have the same secret, whose links are refused here. */
  #read(sealed: string, tunnel: string): LinkContent | undefined {
    const content = unseal(this.#key, LINK_PURPOSE, sealed)
    if (content === undefined) return undefined
    const { id, path, exp, once, tunnel: its } = content
    if (its !== undefined && its !== tunnel) return undefined
    if (typeof id !== 'string' || typeof path !== 'string' || typeof exp !== 'number') return undefined
    const isOver = exp * 1_000 <= Date.now() || this.#book.hasEnded(id) || this.#book.hasUsed(id)
    return isOver ? undefined : { id, path, exp, ...(once === true && { once }) }
  }
}

function refused(visitor: Request): Refusal {
  return refusedAs('LINK_REFUSED', visitor)
}
