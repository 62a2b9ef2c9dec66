// Caches which servers hold a name: asks the directory once, and keeps its reply until it reports a change.

import type { Directory, Place } from '../../directory.ts'

/** The number of remembered names. Above it, the oldest one is forgotten. */
const MAX_NAMES = 10_000
/** The time in milliseconds after which a missed change is noticed. */
const KNOWN_MS = 30_000
/**
 * The time in milliseconds before a name without a server is asked for again, so that visitors of a name that does
 * not exist cost the directory one request per second.
 */
const FREE_MS = 1_000
/** The maximum number of questions in progress. Further ones are refused, because names are easy to invent. */
const MAX_QUESTIONS = 1_000
/** The maximum number of repetitions of a question because of a change during it. */
const MAX_AGAIN = 2

interface Asked {
  /** The server with the name according to a change. The reply may be older. */
  node?: string
  answer: Promise<readonly Place[]>
}

/** Whether no change contradicts the reply. */
function isLatestOf(nodes: readonly Place[], { node }: Asked): boolean {
  return node === undefined || hasNode(nodes, node)
}

interface Known {
  readonly nodes: readonly Place[]
  readonly until: number
}

export class Places {
  readonly #directory: Directory
  readonly #known = new Map<string, Known>()
  readonly #asked = new Map<string, Asked>()

  constructor(directory: Directory) {
    this.#directory = directory
  }

  /**
   * Returns the servers of a name; empty if none has it. Rejects if the directory cannot be reached; `undefined` if
   * too many questions are in progress.
   */
  find(name: string): readonly Place[] | Promise<readonly Place[]> | undefined {
    const known = this.#known.get(name)
    if (known !== undefined && known.until > performance.now()) return known.nodes
    const asked = this.#asked.get(name)
    if (asked !== undefined && asked.node === undefined) return asked.answer
    if (this.#asked.size >= MAX_QUESTIONS) return undefined
    const asking: Asked = { answer: Promise.resolve([]) }
    this.#asked.set(name, asking)
    asking.answer = this.#ask(name, known, asking)
    return asking.answer
  }

  async #ask(name: string, known: Known | undefined, asking: Asked): Promise<readonly Place[]> {
    try {
      let nodes = await this.#directory.find(name)
      for (let again = 0; again < MAX_AGAIN && asking.node !== '' && !isLatestOf(nodes, asking); again++)
        nodes = await this.#directory.find(name)
      const isLatest = isLatestOf(nodes, asking)
      if (isLatest && this.#asked.get(name) === asking) this.#keep(name, nodes)
      return nodes
    } catch (error) {
      // A server that was right a minute ago most likely still is.
      if (known !== undefined && known.nodes.length > 0) return known.nodes
      throw error
    } finally {
      if (this.#asked.get(name) === asking) this.#asked.delete(name)
    }
  }

  #keep(name: string, nodes: readonly Place[]): void {
    this.#known.delete(name)
    if (this.#known.size >= MAX_NAMES)
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest)
        break
      }
    const ms = nodes.some(({ url }) => url !== '') ? KNOWN_MS : FREE_MS
    this.#known.set(name, { nodes, until: performance.now() + ms })
  }

  forget(name: string): void {
    this.#known.delete(name)
    this.#asked.delete(name)
  }

  /**
   * Called when another server has the name; `''`: it is free. Known names stay, because changes may come after the
   * response that contains them.
   */
  changed(name: string, node: string): void {
    const asked = this.#asked.get(name)
    if (asked !== undefined) asked.node = node
    const known = this.#known.get(name)
    if (known !== undefined && !hasNode(known.nodes, node)) this.#known.delete(name)
  }

  /** Called when changes may have been missed. Stored places are still used while the directory does not respond. */
  doubt(): void {
    for (const [name, { nodes }] of this.#known) this.#known.set(name, { nodes, until: 0 })
    this.#asked.clear()
  }
}

function hasNode(nodes: readonly Place[], node: string): boolean {
  return nodes.some(({ id }) => id === node)
}
