// Reads the values that commander parsed, and names each invalid one by its flag or variable.

import type { Command } from 'commander'
import { MAX_RANGE_PORTS, portsOf } from '../../config/port-range.ts'
import { optionInvalid } from '../../errors.ts'
import { noPort } from '../../names.ts'
import type { Given } from './destination.ts'

export class Flags {
  readonly #command: Command

  constructor(command: Command) {
    this.#command = command
  }

  text(name: string): string | undefined {
    // Every option with a value is declared as one string.
    return this.#command.getOptionValue(name) as string | undefined
  }

  given(name: string): Given | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : { text, isTyped: this.isTyped(name) }
  }

  allGiven(name: string): readonly Given[] {
    return this.list(name).map(text => ({ text, isTyped: this.isTyped(name) }))
  }

  isOn(name: string): boolean {
    return this.#command.getOptionValue(name) === true
  }

  /** Whether a flag that begins with `--no-` was given. `name` is without it. */
  isOff(name: string): boolean {
    return this.#command.getOptionValue(name) === false
  }

  /** Whether it was given on the command line, not by its variable. */
  isTyped(name: string): boolean {
    return this.#command.getOptionValueSource(name) === 'cli'
  }

  /** Returns the values of a repeatable flag. Its variable separates the values by commas. */
  list(name: string): readonly string[] {
    // `repeatable` of program/values.ts collects strings.
    const values = (this.#command.getOptionValue(name) as readonly string[] | undefined) ?? []
    const isFromEnvironment = this.#command.getOptionValueSource(name) === 'env'
    const all = isFromEnvironment ? values.flatMap(value => value.split(',')) : values
    return all.map(value => value.trim()).filter(value => value !== '')
  }

  port(name: string, lowest: 0 | 1): number | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : parsePort(text, this.label(name), lowest)
  }

  portRange(name: string): readonly number[] | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : parsePortRange(text, this.label(name))
  }

  /** Returns `--origin-timeout`, or the variable if the value came from there. */
  label(name: string): string {
    const option = this.#command.options.find(one => one.attributeName() === name)
    const isFromEnvironment = this.#command.getOptionValueSource(name) === 'env'
    return (isFromEnvironment ? option?.envVar : option?.long) ?? name
  }
}

export function parsePortRange(text: string, label: string): readonly number[] {
  if (!text.includes('-')) return [parsePort(text, label, 1)]
  const ports = portsOf(text)
  if (ports !== undefined) return ports
  throw optionInvalid(
    `${label} ${JSON.stringify(text)} is not a range of at most ${MAX_RANGE_PORTS} ports from 1 to 65535, such as 27015-27030.`,
    { action: '' },
  )
}

/** Parses a port. `label`: the flag or variable that it came from; `''` for none. */
export function parsePort(text: string, label: string, lowest: 0 | 1): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1
  if (port >= lowest && port <= 65_535) return port
  throw noPort(`${label} ${JSON.stringify(text)}`.trim(), lowest)
}
