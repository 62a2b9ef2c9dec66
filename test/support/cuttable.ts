// A directory that a test can cut off: calls fail, and changes are not heard.

import type { Directory, DirectoryTables } from '../../src/directory.ts'

export class Cuttable implements Directory {
  isCut = false
  readonly tables: DirectoryTables | undefined
  readonly #inner: Directory

  constructor(inner: Directory) {
    this.#inner = inner
    const { tables } = inner
    this.tables = tables && {
      listen: heard =>
        this.#call(() =>
          tables.listen((...change) => {
            if (!this.isCut) heard(...change)
          }),
        ),
      put: (...args) => this.#call(() => tables.put(...args)),
      read: name => this.#call(() => tables.read(name)),
      changes: () => this.#call(() => tables.changes()),
    }
  }

  #call<Value>(call: () => Promise<Value>): Promise<Value> {
    return this.isCut ? Promise.reject(new Error('cut off')) : call()
  }

  listen: Directory['listen'] = listener =>
    this.#call(() =>
      this.#inner.listen({
        changed: (...change) => {
          if (!this.isCut) listener.changed(...change)
        },
        reconnected: () => listener.reconnected(),
      }),
    )
  beat: Directory['beat'] = (...args) => this.#call(() => this.#inner.beat(...args))
  claim: Directory['claim'] = (...args) => this.#call(() => this.#inner.claim(...args))
  restore: Directory['restore'] = (...args) => this.#call(() => this.#inner.restore(...args))
  release: Directory['release'] = (...args) => this.#call(() => this.#inner.release(...args))
  find: Directory['find'] = name => this.#call(() => this.#inner.find(name))
  ports: Directory['ports'] = () => this.#call(() => this.#inner.ports())
  leave: Directory['leave'] = node => this.#call(() => this.#inner.leave(node))
  nodes: Directory['nodes'] = () => this.#call(() => this.#inner.nodes())
  secret: Directory['secret'] = fresh => this.#call(() => this.#inner.secret(fresh))
  close: Directory['close'] = () => this.#inner.close()
}
