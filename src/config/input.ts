// Types of configuration files in TypeScript, inferred from the rows of schema/. tools/bundle.ts writes them with comments for the package.

import type { Input } from './schema/inferred.ts'

/** What the file of a client may say. */
export type ClientFile = Input<'client'>

/** What the file of a server may say. */
export type ServerFile = Input<'server'>
