// The types of the rows: for a TypeScript file, and for the options of a checked file.

import type { RouteTarget } from '../target.ts'
import type { CLIENT_ROWS } from './client.ts'
import type { GUARD_ROWS } from './guard.ts'
import type { SERVER_ROWS } from './server.ts'

export type Input<Name extends string> = Table<Name, 'file'>

/** A table as `Check` returns it. */
export type Output<Name extends string> = Table<Name, 'options'>

/** Which type to make: keys differ, and so do values with a unit, which a file may write as text. */
type As = 'file' | 'options'

type AllRows = typeof CLIENT_ROWS & typeof GUARD_ROWS & typeof SERVER_ROWS

/** The rows of a table, with those of the table that `...` names, except for keys that the table itself has. */
type RowsOf<Name extends keyof AllRows> = Omit<AllRows[Name], '...'> &
  (AllRows[Name] extends { readonly '...': infer Other extends keyof AllRows }
    ? Omit<RowsOf<Other>, keyof AllRows[Name]>
    : unknown)

type Table<Name extends string, To extends As> = Name extends keyof AllRows
  ? Options<RowsOf<Name>, To>
  : never

type Options<Rows, To extends As> = Plain<
  {
    readonly [Key in keyof Rows & string as IsRequired<Rows[Key]> extends true
      ? Option<Key, Rows[Key], To>
      : never]: Value<Text<Rows[Key]>, To>
  } & {
    readonly [Key in keyof Rows & string as IsRequired<Rows[Key]> extends true
      ? never
      : Option<Key, Rows[Key], To>]?: Value<Text<Rows[Key]>, To>
  }
>

/** Flattens an intersection: an editor then shows one object. */
type Plain<Type> = { readonly [Key in keyof Type]: Type[Key] }

type Text<Row> = Row extends readonly [infer First, ...unknown[]] ? First : never
type IsRequired<Row> = Row extends readonly [string, string, 'required', ...unknown[]] ? true : false

/** The key in camelCase. An option also has its unit, or a name of its own. */
type Option<Key extends string, Row, To extends As> = To extends 'file'
  ? Camel<Key>
  : Row extends readonly [string, string, string, { readonly option: infer Own extends string }]
    ? Own
    : `${Camel<Key>}${Text<Row> extends `duration${string}` ? 'Ms' : Text<Row> extends `bytes${string}` ? 'Bytes' : ''}`

type Camel<Key extends string> = Key extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Key

/** The type of the first text of a row, as `rows.ts` reads it. */
type Value<Words, To extends As> = Words extends `list of (${infer Items})`
  ? readonly Value<Items, To>[]
  : Words extends `${infer One} | ${infer Others}`
    ? Value<One, To> | Value<Others, To>
    : Words extends `'${infer Choice}'`
      ? Choice
      : Words extends `${'list' | 'set'} of ${infer Items}`
        ? readonly Value<Items, To>[]
        : Words extends `map ${string} of ${infer Each}`
          ? ByName<Value<Each, To>, To>
          : Words extends `table ${infer Name}`
            ? Table<Name, To>
            : Words extends 'flag'
              ? boolean
              : Words extends `${number}-${number}` | `${number}+`
                ? number
                : Words extends `${'duration' | 'size' | 'bytes'}${string}`
                  ? Read<number, To>
                  : Words extends 'port-range'
                    ? number | string
                    : Words extends 'ports'
                      ? Read<string, To>
                      : Words extends 'target'
                        ? Read<RouteTarget, To>
                        : string

type ByName<Each, To extends As> = To extends 'file'
  ? Readonly<Record<string, Each>>
  : ReadonlyMap<string, Each>
type Read<Result, To extends As> = To extends 'file' ? number | string : Result
