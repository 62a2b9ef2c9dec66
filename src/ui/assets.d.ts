// Files that Bun's bundler reads: styles of a page, and the mark as text.

declare module '*.css'
declare module '*.svg' {
  const text: string
  export default text
}
