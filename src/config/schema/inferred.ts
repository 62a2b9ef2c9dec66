// The types of the rows: for a TypeScript file, and for the options that a checked file becomes.

import type { ClientLimits } from '../../client/limits.ts'
import type { ServerLimits } from '../../server/options.ts'
import type { RouteTarget } from '../target.ts'
import type { CLIENT_ROWS } from './client.ts'
import type { GUARD_ROWS } from './guard.ts'
import type { SERVER_ROWS } from './server.ts'

type AllRows = typeof CLIENT_ROWS & typeof GUARD_ROWS & typeof SERVER_ROWS
type Name = keyof AllRows

/** The rows of a table, with those of the table that `...` names and whose keys it does not have. */
type RowsOf<Table extends Name> = Omit<AllRows[Table], '...'> &
  (AllRows[Table] extends { readonly '...': infer Other extends Name }
    ? Omit<RowsOf<Other>, keyof AllRows[Table]>
    : unknown)

/** Flattens an intersection: an editor then shows one object. */
type Plain<Type> = { readonly [Key in keyof Type]: Type[Key] }

type Camel<Key extends string> = Key extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Key

type Text<R> = R extends readonly [infer Value, ...unknown[]] ? Value : never
type IsRequired<R> = R extends readonly [string, string, 'required', ...unknown[]] ? true : false

/** A table as a TypeScript file writes it. */
export type Input<Table extends string> = Table extends 'limits'
  ? InputLimits<ServerLimits>
  : Table extends 'client-limits'
    ? InputLimits<ClientLimits>
    : Table extends Name
      ? Plain<
          {
            readonly [Key in keyof RowsOf<Table> & string as IsRequired<RowsOf<Table>[Key]> extends true
              ? Camel<Key>
              : never]: InputOf<Text<RowsOf<Table>[Key]>>
          } & {
            readonly [Key in keyof RowsOf<Table> & string as IsRequired<RowsOf<Table>[Key]> extends true
              ? never
              : Camel<Key>]?: InputOf<Text<RowsOf<Table>[Key]>>
          }
        >
      : never

type InputLimits<Limits> = {
  readonly [Key in keyof Limits & string as Key extends `${infer Bare}${'Ms' | 'Bytes'}`
    ? Bare
    : Key]?: Key extends `${string}${'Ms' | 'Bytes'}` ? number | string : number
}

type InputOf<Value> = Value extends `list of (${infer Items})`
  ? readonly InputOf<Items>[]
  : Value extends `${infer One} | ${infer Others}`
    ? InputOf<One> | InputOf<Others>
    : Value extends `'${infer Choice}'`
      ? Choice
      : Value extends `${'list' | 'set'} of ${infer Items}`
        ? readonly InputOf<Items>[]
        : Value extends `map ${string} of ${infer Each}`
          ? Readonly<Record<string, InputOf<Each>>>
          : Value extends `table ${infer Table}`
            ? Input<Table>
            : Value extends 'flag'
              ? boolean
              : Value extends `${number}-${number}` | `${number}+`
                ? number
                : Value extends `${'duration' | 'size' | 'bytes' | 'port-range' | 'ports' | 'target'}${string}`
                  ? number | string
                  : string

/** A table as `Check` returns it. */
export type Output<Table extends string> = Table extends Name
  ? Plain<
      {
        readonly [Key in keyof RowsOf<Table> & string as IsRequired<RowsOf<Table>[Key]> extends true
          ? Option<Key, RowsOf<Table>[Key]>
          : never]: OutputOf<Text<RowsOf<Table>[Key]>>
      } & {
        readonly [Key in keyof RowsOf<Table> & string as IsRequired<RowsOf<Table>[Key]> extends true
          ? never
          : Option<Key, RowsOf<Table>[Key]>]?: OutputOf<Text<RowsOf<Table>[Key]>>
      }
    >
  : never

/** The name of an option: the key in camelCase, with its unit. */
type Option<Key extends string, R> = R extends readonly [
  string,
  string,
  string,
  { readonly option: infer Own extends string },
]
  ? Own
  : `${Camel<Key>}${Text<R> extends `duration${string}` ? 'Ms' : Text<R> extends `bytes${string}` ? 'Bytes' : ''}`

type OutputOf<Value> = Value extends `list of (${infer Items})`
  ? readonly OutputOf<Items>[]
  : Value extends `${infer One} | ${infer Others}`
    ? OutputOf<One> | OutputOf<Others>
    : Value extends `${'list' | 'set'} of ${infer Items}`
      ? readonly OutputOf<Items>[]
      : Value extends `map ${string} of ${infer Each}`
        ? ReadonlyMap<string, OutputOf<Each>>
        : Value extends `table ${infer Table}`
          ? Output<Table>
          : Value extends `${'duration' | 'size' | 'bytes'}${string}`
            ? number
            : Value extends 'target'
              ? RouteTarget
              : Value extends 'ports'
                ? string
                : InputOf<Value>
