// Loads the plugins in a server's configuration file: modules of the operator, whose default export is a plugin or a
// list of them.

import { pathToFileURL } from 'node:url'
import { optionInvalid, type TunnelError } from '../../errors.ts'
import type { Guard, Middleware, Observer } from '../../plugin.ts'

export interface LoadedPlugins {
  readonly guards: readonly Guard[]
  readonly middlewares: readonly Middleware[]
  readonly observers: readonly Observer[]
}

/**
 * Loads plugins in order. Rejects with `OPTION_INVALID` for a module that cannot be loaded, or an export that is not a plugin.
 */
export async function loadPlugins(paths: readonly string[]): Promise<LoadedPlugins> {
  const guards: Guard[] = []
  const middlewares: Middleware[] = []
  const observers: Observer[] = []
  for (const path of paths)
    for (const plugin of await pluginsOf(path)) {
      let isAny = false
      if (isGuard(plugin)) isAny = guards.push(plugin) > 0
      if (isMiddleware(plugin)) isAny = middlewares.push(plugin) > 0
      if (isObserver(plugin)) isAny = observers.push(plugin) > 0
      if (!isAny)
        throw invalid(
          path,
          plugin instanceof Promise
            ? 'its default export is a Promise: write export default await'
            : 'its default export is neither a guard (admit), a middleware (handle) nor an observer (began, responded, ended)',
        )
    }
  return { guards, middlewares, observers }
}

async function pluginsOf(path: string): Promise<readonly unknown[]> {
  let module: unknown
  try {
    module = await import(pathToFileURL(path).href)
  } catch (cause) {
    throw invalid(path, cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause), cause)
  }
  const all =
    typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined
  const list: readonly unknown[] = Array.isArray(all) ? all : [all]
  return list
}

function hasFunction(plugin: unknown, names: readonly string[]): boolean {
  if (typeof plugin !== 'object' || plugin === null) return false
  // An instance of a class has its functions in the prototype.
  return names.some(name => typeof Reflect.get(plugin, name) === 'function')
}

const isGuard = (plugin: unknown): plugin is Guard => hasFunction(plugin, ['admit'])
const isMiddleware = (plugin: unknown): plugin is Middleware => hasFunction(plugin, ['handle'])
const isObserver = (plugin: unknown): plugin is Observer =>
  hasFunction(plugin, ['began', 'responded', 'ended'])

function invalid(path: string, what: string, cause?: unknown): TunnelError {
  return optionInvalid(`The plugin ${path} cannot be used: ${what}.`, { cause })
}
