// The accelerator, if a connection may be dialled for it. Absent on Node, whose bundles do not load it.

import type { Accelerator } from '../../../accelerator.ts'

/** Returns the accelerator once its thread for lanes runs. `undefined` if it is impossible here, or now. */
export async function readyAccelerator(): Promise<Accelerator | undefined> {
  if (!('Bun' in globalThis)) return undefined
  const { accelerator } = await import('../../../accelerator/door.ts')
  return (await accelerator?.ready()) ? accelerator : undefined
}
