// Which servers hold a name: asked of the directory once, and remembered until it says that this has changed.

import type { Directory, Node } from '../../directory.ts'

/** Names remembered; the one asked for first is forgotten for the next. */
const MAX_NAMES = 10_000
/** A change that was not heard of is noticed after this time. */
const KNOWN_MS = 30_000
/** A name that no server holds is asked for again after this time: visitors of a name that does not exist cost the directory one question a second. */
const FREE_MS = 1_000
/** Questions under way. One more is refused: names are cheap to make up. */
const MAX_QUESTIONS = 1_000

interface Known {
  readonly nodes: readonly Node[]
  readonly until: number
}

export class Places {
  readonly #directory: Directory
  readonly #known = new Map<string, Known>()
  readonly #asked = new Map<string, Promise<readonly Node[]>>()
  /** Grows with each change: an answer that was under way then may be older. */
  #changes = 0

  constructor(directory: Directory) {
    this.#directory = directory
  }

  /** Empty: no server holds it. Rejects when the directory cannot be reached; `undefined`: too much is asked already. */
  find(name: string): readonly Node[] | Promise<readonly Node[]> | undefined {
    const known = this.#known.get(name)
    if (known !== undefined && known.until > performance.now()) return known.nodes
    const asked = this.#asked.get(name)
    if (asked !== undefined) return asked
    if (this.#asked.size >= MAX_QUESTIONS) return undefined
    const asking = this.#ask(name, known)
    this.#asked.set(name, asking)
    return asking
  }

  async #ask(name: string, known: Known | undefined): Promise<readonly Node[]> {
    const changes = this.#changes
    try {
      const nodes = await this.#directory.find(name)
      if (changes === this.#changes) this.#keep(name, nodes)
      return nodes
    } catch (error) {
      // A server that was right a minute ago most likely still is.
      if (known !== undefined && known.nodes.length > 0) return known.nodes
      throw error
    } finally {
      if (changes === this.#changes) this.#asked.delete(name)
    }
  }

  #keep(name: string, nodes: readonly Node[]): void {
    this.#known.delete(name)
    if (this.#known.size >= MAX_NAMES)
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest)
        break
      }
    const ms = nodes.some(({ url }) => url !== '') ? KNOWN_MS : FREE_MS
    this.#known.set(name, { nodes, until: performance.now() + ms })
  }

  /** It may be held by another server now. */
  forget(name: string): void {
    this.#known.delete(name)
    this.#changed()
  }

  /** Changes may have been missed. What is remembered stays of use where the directory does not answer. */
  doubt(): void {
    for (const [name, { nodes }] of this.#known) this.#known.set(name, { nodes, until: 0 })
    this.#changed()
  }

  #changed(): void {
    this.#changes++
    this.#asked.clear()
  }
}
