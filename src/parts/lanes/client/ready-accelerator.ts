// The accelerator where a connection may be dialled for it: absent on Node, whose bundles do not load it.

import type { Accelerator } from '../../../accelerator.ts'

/** The accelerator, once its thread for lanes runs. `undefined`: not here, or not now. */
export async function readyAccelerator(): Promise<Accelerator | undefined> {
  if (!('Bun' in globalThis)) return undefined
  const { accelerator } = await import('../../../accelerator/door.ts')
  return (await accelerator?.ready()) ? accelerator : undefined
}
