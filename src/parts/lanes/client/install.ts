// Lanes as a part of a client, loaded when a server first asks for them.

import type { Install } from '../../../client/contracts/part.ts'
import type { SessionTrunk } from './session-trunk.ts'

export const installLanes: Install = () => ({
  lanes: {
    forSession(session, links) {
      let trunk: SessionTrunk | undefined
      return {
        wanted() {
          void import('./session-trunk.ts').then(loaded => {
            trunk ??= new loaded.SessionTrunk(session, links)
            trunk.wanted()
          })
        },
        begin: (handler, link, lane) => trunk?.begin(handler, link, lane),
      }
    },
  },
})
