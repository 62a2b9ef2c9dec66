// The documentation as a site: `bun run site` builds it into docs/.vitepress/dist. Every page is readable without JavaScript.

import { readFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import { VERSION } from '../../src/version.ts'

/** Names of pages in the sidebar, where the name of the file is not the text. */
const NAMES: Readonly<Record<string, string>> = {
  'start/share': 'Share an app',
  'start/name': 'Names and several services',
  'start/server': 'Your own server',
  guards: 'Protect a tunnel',
  inspector: 'Inspect and replay',
  tcp: 'TCP, UDP and TLS',
  apps: 'What the app can be',
  tokens: 'Tokens, teams and CI',
  http: 'HTTP versions',
  operating: 'Operate',
  monitoring: 'Monitor',
  errors: 'Error codes',
  balancing: 'Several clients, one name',
  proxies: 'Outgoing proxies',
  cluster: 'Several servers',
  integrations: 'Dev servers and tests',
  agents: 'AI agents',
  tls: 'Certificates and TLS',
  cli: 'Command line',
  'coming-from': 'Coming from another tunnel',
}

/** Pages for contributors, and the detailed results of the benchmarks: links to them lead to the repository. */
const NOT_ON_SITE = ['decisions/', 'benchmarks/', 'tour.md', 'testing.md', 'protocol.md', 'performance.md']

/** The mark of the product: dark by the preference of the browser, or by the switch of the site. */
const MARK = readFileSync(join(import.meta.dirname, '../../src/ui/mark.svg'), 'utf8')
const [, LIGHT = '', DARK = ''] = /<style>(.*?)@media[^{]*\{(.*?\})\}/.exec(MARK) ?? []
const urlOf = (svg: string) => `data:image/svg+xml,${encodeURIComponent(svg)}`
const markIn = (style: string) => urlOf(MARK.replace(/<style>.*<\/style>/, `<style>${style}</style>`))

/** The repository that links to other files lead to. A workflow knows its name. */
const [OWNER = '', NAME = ''] = (process.env.GITHUB_REPOSITORY ?? 'localtunnels/localtunnels').split('/')
const REPOSITORY = `https://github.com/${OWNER}/${NAME}/blob/main`
/** Social networks take addresses that are complete. */
const SITE = `https://${OWNER}.github.io/${NAME}/`

/** Returns the address in the repository of a page or file that is not on the site. */
function inRepository(href: string): string | undefined {
  if (NOT_ON_SITE.some(page => href.startsWith(page))) return `${REPOSITORY}/docs/${href}`
  if (/^\.\.\/(?!\w+\.md)|^\.\.\/[A-Z]+\.md/.test(href)) return `${REPOSITORY}/${href.slice(3)}`
  return undefined
}

/** The id of a heading as GitHub makes it: a link to it holds at both places. */
const idOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** A flag such as `--server` is one word; what is longer may be broken. A command is read without scrolling. */
const STYLE = `
.vp-doc :not(pre) > code { overflow-wrap: anywhere }
.vp-doc code.word { white-space: nowrap }
.vp-doc a:has(> code) { text-underline-offset: 5px }
.DocSearch-Button-Key + .DocSearch-Button-Key::after { content: 'K' }
.vp-doc [class*='language-'] > span.lang { color: var(--vp-c-text-2) }
.vp-doc .language-sh .line { display: inline-block; white-space: pre-wrap; padding-left: 2ch; text-indent: -2ch }
.vp-doc .language-sh .line span { display: inline-block; text-indent: 0 }
@media (max-width: 640px) {
  .vp-doc table.rows, .vp-doc .rows tbody { display: block }
  .vp-doc .rows thead { position: absolute; display: block; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  .vp-doc .rows tr { display: block; padding: 8px 0; background: none }
  .vp-doc .rows td { display: inline-block; max-width: 100%; margin-right: 16px; padding: 0; border: 0; overflow-wrap: anywhere }
  .vp-doc .rows td:first-child { display: block; margin: 0; font-weight: 600 }
  .vp-doc .rows td:empty { display: none }
  .vp-doc .rows td + td::before { content: attr(data-head) ': '; color: var(--vp-c-text-2) }
}`

/** Pages whose tables are wider than a phone and are no figures to compare: there each row stands for itself. */
const ROWS = /^(?:errors|tokens|tcp|apps|security|configuration|coming-from|http|webhooks|inspector)\.md$/

type Token = ReturnType<MarkdownRenderer['parse']>[number]

/** Each row of a table becomes a block on a phone: the first cell is its heading, the others say what they are. */
function markRows(tokens: readonly Token[]): void {
  let heads: string[] = []
  let column = 0
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'table_open') {
      token.attrJoin('class', 'rows')
      heads = []
    }
    if (token.type === 'th_open') heads.push(textOf(tokens[at + 1]))
    if (token.type === 'tr_open') column = 0
    if (token.type === 'td_open') token.attrSet('data-head', heads[column++] ?? '')
  }
}

const textOf = (token: Token | undefined): string =>
  (token?.children ?? []).map(({ content }) => content).join('')

/** Without JavaScript: no buttons that do nothing, and the list of pages below the page. */
const PLAIN = `<style>
.VPNavBarSearch, .VPNavBarAppearance, .VPNavBarHamburger, .VPLocalNav, .VPDoc .aside { display: none !important }
@media (max-width: 959px) {
  .Layout { display: flex; flex-direction: column }
  .VPContent { order: 1 }
  .VPSidebar { order: 2; position: static !important; transform: none !important; opacity: 1 !important; width: auto !important;
    max-width: none !important; visibility: visible !important; box-shadow: none !important }
}
</style>`

const pages = (...names: readonly string[]) =>
  names.map(name => {
    const last = name.replace(/.*\//, '')
    return {
      text: NAMES[name] ?? `${last[0]?.toUpperCase()}${last.slice(1).replaceAll('-', ' ')}`,
      link: `/${name}`,
    }
  })

export default defineConfig({
  title: 'localtunnels',
  description: 'The app on your machine gets a public URL, through a server that is yours.',
  lang: 'en',
  cleanUrls: true,
  head: [
    ['link', { rel: 'icon', href: urlOf(MARK) }],
    ['style', {}, STYLE],
    ['noscript', {}, PLAIN],
  ],
  transformHead: ({ title, description, pageData: { relativePath } }) =>
    Object.entries({
      'og:type': 'website',
      'og:site_name': 'localtunnels',
      'og:title': title,
      'og:description': description,
      'og:url': SITE + relativePath.replace(/(?:index)?\.md$/, ''),
      'og:image': `${SITE}images/inspector.png`,
      'twitter:card': 'summary_large_image',
    }).map(([property, content]) => ['meta', { property, content }]),
  srcExclude: NOT_ON_SITE.map(page => (page.endsWith('/') ? `${page}**` : page)),
  ignoreDeadLinks: [/operating\//, /localhost/],
  markdown: {
    anchor: { slugify: idOf },
    // `http(s)://` has `:/`, which is a face to the plug-in.
    emoji: { shortcuts: {} },
    // The usual themes are too pale for axe.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { caddy: 'nginx', haproxy: 'nginx' },
    config: markdown => {
      // `<port>` in a heading is a word, marks for the tests are nothing to read, an address of an example is no link.
      markdown.set({ html: false, linkify: false })
      // VitePress writes the tag of a table without its attributes.
      markdown.renderer.rules.table_open = (tokens, at, options, _env, self) => {
        tokens[at]?.attrSet('tabindex', '0')
        return self.renderToken(tokens, at, options)
      }
      markdown.core.ruler.push('site', ({ tokens, env }) => {
        if (ROWS.test(env.relativePath)) markRows(tokens)
        // The corner of a table is no head of a column when nothing is in it.
        for (const [at, { type, content }] of tokens.entries()) {
          const [before, after] = [tokens[at - 1], tokens[at + 1]]
          if (type === 'inline' && content === '' && before?.type === 'th_open' && after?.type === 'th_close')
            before.tag = after.tag = 'td'
        }
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const there = inRepository(token.attrGet('href') ?? '')
          if (there !== undefined) token.attrSet('href', there)
          if (token.type === 'code_inline' && token.content.length < 28) token.attrJoin('class', 'word')
        }
      })
    },
  },
  vite: {
    plugins: [
      {
        name: 'without-marks',
        enforce: 'pre',
        transform(text: string, id: string) {
          if (id.endsWith('.md')) return text.replace(/^<!-- .*? -->$/gm, '')
          // The first page has no main landmark of its own.
          if (id.endsWith('/VPHome.vue'))
            return text
              .replace(/<div(?=\s+class="VPHome")/, '<main')
              .replace(/<\/div>(?=\s*<\/template>\s*<style)/, '</main>')
          // The name of the button is "Search": its second key is drawn as the first is, and is no text.
          return id.endsWith('/VPNavBarSearchButton.vue') ? text.replace('>K</kbd>', '></kbd>') : undefined
        },
      },
    ],
  },
  // Files that pages lead to, besides pages and pictures.
  buildEnd: async ({ srcDir, outDir }) => {
    const isData = (path: string) => !path.endsWith('.md')
    for (const name of ['operating', 'security', 'images/inspector.png', 'localtunnels.schema.json'])
      await cp(join(srcDir, name), join(outDir, name), { recursive: true, filter: isData })
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    notFound: {
      title: 'No such page',
      quote: 'The search finds what you look for.',
      linkText: 'To the first page',
    },
    logo: { light: markIn(LIGHT), dark: markIn(DARK), alt: '' },
    nav: [
      { text: 'Start', link: '/start/share' },
      { text: 'Guides', link: '/inspector' },
      { text: 'Reference', link: '/cli' },
      { text: VERSION, link: `${REPOSITORY}/CHANGELOG.md` },
    ],
    socialLinks: [{ icon: 'github', link: `https://github.com/${OWNER}/${NAME}` }],
    editLink: { pattern: `https://github.com/${OWNER}/${NAME}/edit/main/docs/:path`, text: 'Edit this page' },
    sidebar: [
      {
        text: 'Get started',
        items: pages('installing', 'start/share', 'start/name', 'start/server', 'guards'),
      },
      {
        text: 'Guides',
        items: pages(
          'inspector',
          'webhooks',
          'integrations',
          'tcp',
          'private',
          'apps',
          'balancing',
          'tokens',
          'agents',
          'proxies',
          'coming-from',
        ),
      },
      {
        text: 'Run a server',
        items: pages('tls', 'operating', 'monitoring', 'behind-a-proxy', 'cluster', 'plugins'),
      },
      { text: 'Reference', items: pages('cli', 'configuration', 'library', 'errors', 'http') },
      {
        text: 'About',
        items: pages('security', 'comparison', 'benchmarks'),
      },
    ],
  },
})
