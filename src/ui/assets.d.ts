// Files that Bun's bundler reads: styles of a page.

declare module '*.css'
