// Types for configuration files in TypeScript.

import type { ClientFile, ServerFile } from './input.ts'

/**
 * Gives the configuration in `localtunnels.ts` its types: `export default defineConfig({ … })`. It returns what it gets;
 * `localtunnels config check` checks the rest.
 */
export function defineConfig<const Config extends ClientFile | ServerFile>(config: Config): Config {
  return config
}
