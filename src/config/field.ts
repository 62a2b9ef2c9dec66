// Contract: what a key of a configuration file may contain. The tables of schema/ consist of these.

import type { Form } from './forms.ts'

export interface Field {
  readonly value: Value
  /** The meaning in one sentence, for documentation, editors and types. */
  readonly meaning: string
  /** The default in words. */
  readonly default?: string
  /** The name in the options of the library, if that is not the key in camelCase. Files may use it as well. */
  readonly option?: string
  /** The kinds of service that have it. Default: all. */
  readonly kinds?: readonly string[]
  readonly isRequired?: true
}

/** The keys in kebab-case, in the order of the documentation. */
export type Fields = Readonly<Record<string, Field>>

export type Value =
  | { readonly type: 'text'; readonly form: Form; readonly isSecret?: true }
  | { readonly type: 'choice'; readonly choices: readonly string[] }
  | { readonly type: 'flag' }
  | { readonly type: 'number'; readonly least: number; readonly most: number }
  /** Milliseconds, or a text with a unit. */
  | { readonly type: 'duration'; readonly least: number }
  /** Bytes, or a text with a unit. */
  | { readonly type: 'size'; readonly least: number }
  /** A port, or `27015-27030`: a number, or the range as text. */
  | { readonly type: 'port-range' }
  /** A list of ports: `20000-29999,2222`, or one number. */
  | { readonly type: 'ports' }
  /** A path, relative to the configuration file's folder. */
  | { readonly type: 'path' }
  /** A path whose text is read. */
  | { readonly type: 'file' }
  /** The target of a route: a port, `host:port`, a URL, `unix:/path`. */
  | { readonly type: 'target' }
  | { readonly type: 'list'; readonly of: Value; readonly isUnique?: true }
  | { readonly type: 'map'; readonly of: Value; readonly keys: Form; readonly each: string }
  | { readonly type: 'table'; readonly fields: Fields }
  /** The first type that accepts the value. */
  | { readonly type: 'either'; readonly of: readonly Value[] }

export const MAX_TIMER_MS = 2_147_483_647

/** Turns `host-header` into `hostHeader`. */
export function camelOf(key: string): string {
  return key.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** Turns `hostHeader` into `host-header`. */
export function kebabOf(name: string): string {
  return name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

export function optionOf(key: string, field: Field): string {
  return field.option ?? camelOf(key)
}

/** Every spelling that a file may use: `idle-timeout`, `idleTimeout`, `idle-timeout-ms`, `idleTimeoutMs`. */
export function spellingsOf(key: string, field: Field): readonly string[] {
  const option = optionOf(key, field)
  return [...new Set([key, camelOf(key), kebabOf(option), option])]
}
