// The usual theme in the colours of the product, with the first page's command and picture.

import { useData, withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h, type VNode } from 'vue'
import light from '../../images/inspector.png'
import dark from '../../images/inspector-dark.png'
import '../../../src/ui/tokens.css'
import './style.css'

/** The main landmark of an address that is not there is missing in VitePress. */
function NotFound(): VNode {
  const { notFound } = useData().theme.value
  return h('main', { class: 'vp-doc', style: 'padding: 64px 24px 96px; text-align: center' }, [
    h('h1', notFound.title),
    h('p', notFound.quote),
    h('p', h('a', { href: withBase('/') }, notFound.linkText)),
  ])
}

/** Each is run by a test on a machine without localtunnels. */
const WAYS = [
  ['Try it', ['bun install', 'bun bin/localtunnels.ts 3000']],
  [
    'Package',
    ['bun install && npm pack', 'npm install --global ./localtunnels-0.1.0.tgz', 'localtunnels 3000'],
  ],
  [
    'Docker',
    [
      'docker build --file packaging/Dockerfile --tag localtunnels .',
      'docker run --network host localtunnels 3000 --server tunnel.example',
    ],
  ],
  ['Executable', ['bun tools/binaries.ts --only linux-x64', 'dist/binaries/localtunnels-linux-x64 3000']],
] as const

/** Radio buttons that look like tabs: they work without JavaScript. */
function Install(): VNode {
  return h('fieldset', { class: 'install' }, [
    h('legend', 'In a clone of the repository:'),
    ...WAYS.flatMap(([name, lines], at) => [
      h('input', { type: 'radio', name: 'way', id: `way-${at}`, ...(at === 0 && { checked: true }) }),
      h('label', { for: `way-${at}` }, name),
      h('pre', { tabindex: 0, 'aria-label': `Commands: ${name}` }, h('code', lines.join('\n'))),
    ]),
  ])
}

function Picture(): VNode {
  const alt =
    'The inspector: a list of requests, and a webhook that failed, its request and response side by side'
  const image = (src: string, look: string) => h('img', { src, alt, class: look, width: 1440, height: 900 })
  return h('figure', { class: 'picture' }, [image(light, 'light'), image(dark, 'dark')])
}

export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'not-found': () => h(NotFound),
      'home-hero-image': () => h(Install),
      'home-hero-after': () => h(Picture),
    }),
}
