// The admin page below a path of a site with https, in Chromium: what it reads and what it writes, whatever the proxy does with the path.

import { expect, setDefaultTimeout, test } from 'bun:test'
import { chromium } from 'playwright-core'
import { ADMIN_TOKEN, adminOptions, askAdmin } from '../support/admin.ts'
import { startNginx } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

setDefaultTimeout(60_000)

describeWith(['chromium', 'nginx'], 'behind nginx', () => {
  test('the page signs in and writes: path kept or removed, with or without a slash, with the Host of the proxy', async () => {
    await using server = await startServer({ basePath: '/tunnel', admin: adminOptions() })
    const admin = new URL(server.adminUrl ?? '').host
    await using dir = await folder('admin-base-path')
    await Bun.write(`${dir.path}/cert.pem`, TEST_CERT)
    await Bun.write(`${dir.path}/key.pem`, TEST_KEY)
    await using nginx = await startNginx(`
      server {
        listen 127.0.0.1:PORT ssl;
        ssl_certificate ${dir.path}/cert.pem;
        ssl_certificate_key ${dir.path}/key.pem;
        location /tunnel/admin { proxy_pass http://${admin}; proxy_set_header Host $http_host; }
        location /ops/ { proxy_pass http://${admin}/; }
      }`)
    const browser = await chromium.launch({
      executablePath: Bun.which('chromium') ?? '',
      args: ['--no-sandbox'],
    })
    try {
      const banned: string[] = []
      for (const path of ['/tunnel/admin/', '/tunnel/admin', '/ops/']) {
        const page = await browser.newPage({ ignoreHTTPSErrors: true })
        await page.goto(`https://localhost:${nginx.port}${path}#${ADMIN_TOKEN}`)
        await page.getByText('Live').waitFor()
        await page.getByRole('link', { name: 'Bans' }).click()
        await page.getByRole('button', { name: 'New ban' }).click()
        const value = `192.0.2.${banned.length}`
        banned.push(value)
        await page.getByLabel('Address, network or name').fill(value)
        await page.getByRole('button', { name: 'Block', exact: true }).click()
        await page.getByRole('row', { name: value }).waitFor()
        await page.close()
      }
      const { body } = await askAdmin(server, '/bans')
      expect(body.bans.map((ban: { value: string }) => ban.value)).toEqual(banned)
    } finally {
      await browser.close()
    }
  })
})
