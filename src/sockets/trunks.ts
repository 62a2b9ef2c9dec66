// Whether connections can carry lanes on this runtime and system: asked before one is dialled for that.

/** Starts what serves lanes, and waits for it. `false`: not here, or not now. Only Bun on Linux has any. */
export async function lanesReady(): Promise<boolean> {
  return 'Bun' in globalThis && (await import('../splice/splices.ts')).lanesReady()
}
