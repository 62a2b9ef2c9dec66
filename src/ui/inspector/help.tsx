// Shows the keys, and turns single-letter keys on or off.

import { useEffect, useRef } from 'preact/hooks'
import { IconButton } from '../parts/icons.tsx'
import { hasShortcuts, KEYS, setShortcuts } from './keys.ts'
import { isHelpOpen } from './signals.ts'

const NAMES: Readonly<Record<string, string>> = { ArrowDown: '↓', ArrowUp: '↑', ' ': 'Space' }

export function Help() {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => box.current?.showModal(), [])
  return (
    <dialog id="help" ref={box} aria-labelledby="help-title" onClose={() => (isHelpOpen.value = false)}>
      <div class="keysheet">
        <div class="keyshead">
          <h2 id="help-title">Keys</h2>
          <IconButton icon="close" label="Close" onClick={() => box.current?.close()} />
        </div>
        <dl>
          {KEYS.map(({ keys, meaning }) => (
            <div key={meaning}>
              <dt class="second">{meaning}</dt>
              <dd>
                {keys.map(key => (
                  <kbd key={key} class="kbd">
                    {NAMES[key] ?? key}
                  </kbd>
                ))}
              </dd>
            </div>
          ))}
          <div>
            <dt class="second">back, one step</dt>
            <dd>
              <kbd class="kbd">Esc</kbd>
            </dd>
          </div>
        </dl>
        <label class="switch">
          <input
            type="checkbox"
            checked={hasShortcuts.value}
            onChange={event => setShortcuts(event.currentTarget.checked)}
          />
          One-key shortcuts
        </label>
      </div>
    </dialog>
  )
}
