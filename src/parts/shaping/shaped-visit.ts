// Both directions of a visit with a limited bandwidth.

import type { Account } from '../../bytes.ts'
import type { Valve, ValveEnds } from '../../server/contracts/layer.ts'
import { ShapedInput } from './shaped-input.ts'
import { ShapedOutput } from './shaped-output.ts'
import type { Shapes } from './shaping.ts'

export class ShapedVisit implements Valve {
  readonly #input: ShapedInput
  readonly #output: ShapedOutput

  constructor({ up, down }: Shapes, { input, output, drained }: ValveEnds) {
    this.#input = new ShapedInput(up, input)
    this.#output = new ShapedOutput(down, {
      write: (bytes, start, end) => output.write(bytes, start, end),
      drained,
    })
  }

  took(bytes: number): void {
    this.#input.took(bytes)
  }

  pause(): void {
    this.#input.pause()
  }

  resume(): void {
    this.#input.resume()
  }

  write(bytes: Uint8Array, start: number, end: number): boolean {
    return this.#output.send(bytes, start, end)
  }

  drained(): void {
    this.#output.drained()
  }

  behind(last: () => void): void {
    this.#output.behind(last)
  }

  charge(account: Account | undefined): void {
    this.#output.account = account
  }

  close(): void {
    this.#output.close()
    this.#input.close()
  }
}
