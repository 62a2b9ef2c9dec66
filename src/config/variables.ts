// Environment variables in texts: ${NAME}, ${NAME:-default}, and $$ for a dollar.

export type Environment = Readonly<Record<string, string | undefined>>

export type Expanded = { readonly text: string } | { readonly message: string }

const PART = /\$(?:\$|\{([^}]*)\}|\{?)/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

export function setVariables(text: string, environment: Environment): readonly string[] {
  const names = [...text.matchAll(PART)].map(([, reference]) => REFERENCE.exec(reference ?? '')?.[1] ?? '')
  return names.filter(name => Object.hasOwn(environment, name) && environment[name])
}

/** Replaces variables. An empty one counts as not set, as everywhere in the CLI. Values are not expanded again. */
export function expand(text: string, environment: Environment): Expanded {
  let message: string | undefined
  const expanded = text.replace(PART, (whole, reference: string | undefined) => {
    if (whole === '$$') return '$'
    if (reference === undefined) {
      message ??=
        whole === '$' ? `write $$ for a dollar, or \${NAME} for a variable` : `a "\${" is not closed with "}"`
      return ''
    }
    const [, name, otherwise] = REFERENCE.exec(reference) ?? []
    if (name === undefined) {
      message ??= `"\${${reference}}" is not a variable: write \${NAME} or \${NAME:-default}`
      return ''
    }
    // Only an own property, so that `constructor` does not count.
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    if (value) return value
    if (otherwise === undefined) {
      message ??= `the variable ${name} is not set: set it, or write \${${name}:-default}`
    }
    return otherwise ?? ''
  })
  return message === undefined ? { text: expanded } : { message }
}
