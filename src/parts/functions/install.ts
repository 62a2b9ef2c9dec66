// Apps that are a function or a folder, as a part of a client: code in this process handles their requests.

import type { Install } from '../../client/contracts/part.ts'
import { folderOrigin } from './folder-origin.ts'
import { HandlerOrigin } from './origin.ts'

export const installFunctions: Install = () => ({
  originOf({ fetch, websocket, folder, spa = false }) {
    if (fetch !== undefined) return new HandlerOrigin(fetch, undefined, websocket)
    return folder === undefined ? undefined : folderOrigin(folder, spa)
  },
})
