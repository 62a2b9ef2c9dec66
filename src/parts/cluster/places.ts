// Which servers hold a name: asked of the directory once, and remembered until it says that this has changed.

import type { Directory, Place } from '../../directory.ts'

/** Names remembered; the one asked for first is forgotten for the next. */
const MAX_NAMES = 10_000
/** A change that was not heard of is noticed after this time. */
const KNOWN_MS = 30_000
/** A name that no server holds is asked for again after this time: visitors of a name that does not exist cost the directory one question a second. */
const FREE_MS = 1_000
/** Questions in progress. One more is refused: names are cheap to make up. */
const MAX_QUESTIONS = 1_000
/** The maximum number of repetitions of a question that a change overtook. */
const MAX_AGAIN = 2

interface Asked {
  /** The server that has the name, from a change: the reply may be older. */
  node?: string
  answer: Promise<readonly Place[]>
}

/** No change says otherwise. */
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
   * Returns the places of a name. Empty if no server has it. Rejects when the directory cannot be reached; `undefined`: too
   * much is asked already.
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
   * Called when another server has the name; `''`: it is free. Known names stay: changes may come behind the response that has
   * them.
   */
  changed(name: string, node: string): void {
    const asked = this.#asked.get(name)
    if (asked !== undefined) asked.node = node
    const known = this.#known.get(name)
    if (known !== undefined && !hasNode(known.nodes, node)) this.#known.delete(name)
  }

  /** Changes may have been missed. Remembered places stay useful while the directory does not respond. */
  doubt(): void {
    for (const [name, { nodes }] of this.#known) this.#known.set(name, { nodes, until: 0 })
    this.#asked.clear()
  }
}

function hasNode(nodes: readonly Place[], node: string): boolean {
  return nodes.some(({ id }) => id === node)
}
