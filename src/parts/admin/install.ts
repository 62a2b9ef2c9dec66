// The operator's listener as a part of a server. It opens before the server does.

import { optionInvalid } from '../../errors.ts'
import type { Install } from '../../server/contracts/part.ts'
import type { AdminOptions } from '../../server/settings/part-options.ts'
import type { Admin } from './admin.ts'
import { FarRows, MAX_KEYS } from './far-rows.ts'
import { adminSettings } from './options.ts'

export const installAdmin: Install = server => {
  const settings = server.settings.admin && adminSettings(server.settings.admin)
  const place = placeOf(server.settings.admin)
  let admin: Admin | undefined
  let far: FarRows | undefined
  return {
    name: 'admin',
    get url() {
      return admin?.url
    },
    recent: () => admin?.service.recent,
    async load({ admin: next }) {
      const wanted = placeOf(next)
      if (wanted === place) return
      const change = `admin cannot change from ${place} to ${wanted} while the server runs`
      throw optionInvalid(`${change}: start it again for that.`)
    },
    async start(whole) {
      if (settings === undefined) return
      const { Admin } = await import('./admin.ts')
      admin = new Admin(server, whole, settings, () => far)
    },
    ...(settings !== undefined && {
      share(open) {
        const table = open('admin', MAX_KEYS)
        return () => {
          const { node } = server.servers!
          far = new FarRows(table, node, () => admin?.service)
        }
      },
    }),
    drain(code) {
      // Requests of the operator are for the other program.
      if (code === 'SERVER_REPLACED') admin?.close()
    },
    async stop() {
      far?.stop()
      await admin?.stop()
      admin = undefined
    },
  }
}

/** Returns the address of the listener. Throws `OPTION_INVALID`. */
function placeOf(options: AdminOptions | undefined): string {
  if (options === undefined) return 'none'
  const { host, port } = adminSettings(options)
  return `${host}:${port}`
}
