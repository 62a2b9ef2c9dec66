// Contract: a tool for agents. Implementations: reading.ts, replaying.ts, sharing.ts.

export interface Argument {
  readonly type: 'string' | 'integer' | 'object' | 'array'
  readonly description: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Argument>>
  readonly items?: Argument
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: Readonly<Record<string, Argument>>
  readonly required: readonly string[]
  /** Whether it changes nothing. */
  readonly isReading: boolean
  /** Whether others can see what it does. */
  readonly isOpen?: true
  /** Runs the tool with checked arguments. Rejects with a `TunnelError`. */
  readonly call: (given: Given, signal: AbortSignal) => Promise<Reply>
}

/** The arguments, which fit the schema. */
export class Given {
  readonly #values: Readonly<Record<string, unknown>>

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values
  }

  text(name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === 'string' ? value : undefined
  }

  number(name: string): number | undefined {
    const value = this.#values[name]
    return typeof value === 'number' ? value : undefined
  }

  object(name: string): Readonly<Record<string, unknown>> | undefined {
    const value = this.#values[name]
    // Checked: an object, and not an array.
    return typeof value === 'object' && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  }
}

export interface Reply {
  /** The text in our own words. */
  readonly said?: string
  /** The captured text, written by strangers: sent as JSON, and marked as foreign. */
  readonly captured?: unknown
}

/** Returns what does not fit the schema, in words. `undefined` if everything fits. */
export function misfit(
  values: Readonly<Record<string, unknown>>,
  { arguments: properties, required }: Pick<Tool, 'arguments' | 'required'>,
): string | undefined {
  const missing = required.find(name => values[name] === undefined)
  if (missing !== undefined) return `${missing} is missing`
  for (const [name, value] of Object.entries(values)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (schema === undefined)
      return `there is no argument ${name.slice(0, 50)}; there are: ${Object.keys(properties).join(', ') || 'none'}`
    const fault = misfitOf(name, value, schema)
    if (fault !== undefined) return fault
  }
  return undefined
}

function misfitOf(name: string, value: unknown, schema: Argument): string | undefined {
  const { type, minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = schema
  if (value === undefined) return undefined
  switch (type) {
    case 'string':
      if (typeof value !== 'string') return `${name} must be a text`
      return schema.enum?.includes(value) === false
        ? `${name} must be one of ${schema.enum.join(', ')}`
        : undefined
    case 'integer':
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= minimum && value <= maximum)
        return undefined
      return `${name} must be a whole number from ${minimum} to ${maximum}`
    case 'array': {
      if (!Array.isArray(value)) return `${name} must be a list`
      const { items } = schema
      for (const one of value as readonly unknown[]) {
        const fault = items && misfitOf(`${name}[]`, one, items)
        if (fault !== undefined) return fault
      }
      return undefined
    }
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return `${name} must be an object`
      // An object of JSON.
      return misfit(value as Readonly<Record<string, unknown>>, {
        arguments: schema.properties ?? {},
        required: [],
      })
    }
  }
}
