// The documentation as a site: `bun run site` builds it into docs/.vitepress/dist. Every page is readable without JavaScript.

import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'

/** The way of a newcomer, one page each. */
const PATH = [
  ['share', 'Share an app'],
  ['name', 'A name of your own'],
  ['server', 'Your own server'],
  ['guard', 'Who may visit'],
  ['inspect', 'See every request'],
  ['webhooks', 'Webhooks'],
  ['tcp', 'More than HTTP'],
  ['team', 'A team'],
  ['cluster', 'Several servers'],
  ['operate', 'Operate it'],
] as const

/** Those that are no plain words. */
const NAMES: Readonly<Record<string, string>> = {
  tls: 'TLS',
  tcp: 'TCP',
  udp: 'UDP',
  http2: 'HTTP/2',
  cli: 'Command line',
  wan: 'A slow road',
  'proxy-protocol': 'PROXY protocol',
  'benchmarks/speed': 'Speed, row by row',
  'benchmarks/memory': 'Memory and start',
  'benchmarks/fidelity': 'Fidelity',
}

/** A tunnel, seen from the front. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 29V16a12 12 0 0 1 24 0v13h-7V16a5 5 0 0 0-10 0v13z" fill="#3451b2"/></svg>'

/** A flag such as `--server` is one word, except where it has no room. */
const STYLE = '@media (min-width: 640px) { .vp-doc :not(pre) > code { white-space: nowrap } }'

const pages = (...names: readonly string[]) =>
  names.map(name => ({
    text: NAMES[name] ?? `${name[0]?.toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`,
    link: `/${name}`,
  }))

export default defineConfig({
  title: 'localtunnels',
  description: 'The app on your machine gets a public URL, through a server that is yours.',
  lang: 'en',
  cleanUrls: true,
  head: [
    ['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }],
    ['style', {}, STYLE],
  ],
  // Decisions are for who changes the code.
  srcExclude: ['decisions/**', 'tour.md', 'testing.md'],
  // What is outside of docs/ is read in the repository.
  ignoreDeadLinks: [/\.\.\//, /decisions\//, /\/tour$/, /\/testing$/, /operating\//, /localhost/],
  // `<port>` in a heading is a word, and marks for the tests are nothing to read.
  markdown: { config: markdown => void markdown.set({ html: false }) },
  vite: {
    plugins: [
      {
        name: 'without-marks',
        enforce: 'pre',
        transform: (text: string, id: string) =>
          id.endsWith('.md') ? text.replace(/^<!-- .*? -->$/gm, '') : undefined,
      },
    ],
  },
  // Files that pages lead to, besides pages and pictures.
  buildEnd: async ({ srcDir, outDir }) => {
    const isData = (path: string) => !path.endsWith('.md')
    for (const name of ['operating', 'benchmarks', 'security', 'localtunnels.schema.json'])
      await cp(join(srcDir, name), join(outDir, name), { recursive: true, filter: isData })
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start/share' },
      { text: 'Reference', link: '/cli' },
    ],
    sidebar: [
      {
        text: 'Start',
        items: PATH.map(([name, text], at) => ({ text: `${at + 1}. ${text}`, link: `/start/${name}` })),
      },
      {
        text: 'How to',
        items: pages(
          'installing',
          'integrations',
          'inspector',
          'webhooks',
          'agents',
          'guards',
          'tokens',
          'tls',
          'tcp',
          'udp',
          'folders',
          'routing',
          'balancing',
          'cluster',
          'operating',
          'plugins',
          'proxies',
          'proxy-protocol',
          'http2',
        ),
      },
      { text: 'Reference', items: pages('cli', 'configuration', 'library', 'errors', 'protocol') },
      {
        text: 'About',
        items: [
          ...pages('security', 'comparison', 'benchmarks'),
          ...pages('benchmarks/speed', 'benchmarks/memory', 'benchmarks/fidelity'),
          ...pages('performance', 'wan', 'walks', 'out-of-scope'),
        ],
      },
    ],
  },
})
