// The usual theme, but for the page of an address that is not there: its main landmark is missing in VitePress.

import { useData, withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'

function NotFound() {
  const { notFound } = useData().theme.value
  return h('main', { class: 'vp-doc', style: 'padding: 64px 24px 96px; text-align: center' }, [
    h('h1', notFound.title),
    h('p', notFound.quote),
    h('p', h('a', { href: withBase('/') }, notFound.linkText)),
  ])
}

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'not-found': () => h(NotFound) }),
}
