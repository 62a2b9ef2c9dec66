// The tree of every syntax: tables, lists and values, each with its place in the file.

import type { Fault, Place } from './fault.ts'

export type Node = TableNode | ListNode | ValueNode | OtherNode

export interface TableNode {
  readonly kind: 'table'
  readonly at: Place | undefined
  readonly entries: ReadonlyMap<string, Entry>
}

export interface Entry {
  readonly at: Place | undefined
  readonly node: Node
}

export interface ListNode {
  readonly kind: 'list'
  readonly at: Place | undefined
  readonly items: readonly Node[]
}

export interface ValueNode {
  readonly kind: 'value'
  readonly at: Place | undefined
  readonly value: string | number | boolean
}

/** A value that no key accepts: a date, null, a function. */
export interface OtherNode {
  readonly kind: 'other'
  readonly at: Place | undefined
  /** The name for messages: `a date`. */
  readonly what: string
}

/** A file that was read, or why it could not be. */
export type Read = { readonly root: TableNode } | { readonly faults: readonly Fault[] }

/** A table being built. A key given twice is a fault, and the first one stays. */
export class TableBuilder implements TableNode {
  readonly kind = 'table'
  readonly at: Place | undefined
  readonly entries: Map<string, Entry> = new Map()
  readonly #faults: Fault[]

  constructor(at: Place | undefined, faults: Fault[]) {
    this.at = at
    this.#faults = faults
  }

  add(key: string, at: Place | undefined, node: Node): void {
    const earlier = this.entries.get(key)
    if (earlier === undefined) this.entries.set(key, { at, node })
    else
      this.#faults.push({
        at,
        message: `${JSON.stringify(key)} is given twice: first in ${lineOf(earlier.at)}`,
      })
  }
}

export function lineOf(at: Place | undefined): string {
  return at === undefined ? 'another line' : `line ${at.line}`
}

/** Returns the name of a node for messages, without its value, which may be a secret. */
export function kindOf(node: Node): string {
  switch (node.kind) {
    case 'table':
      return 'a table'
    case 'list':
      return 'a list'
    case 'other':
      return node.what
    case 'value':
      return { string: 'text', number: 'a number', boolean: 'true or false' }[nameOfType(node.value)]
  }
}

function nameOfType(value: string | number | boolean): 'string' | 'number' | 'boolean' {
  if (typeof value === 'string') return 'string'
  return typeof value === 'number' ? 'number' : 'boolean'
}
