// On a phone the panel of what is selected is below all else: a selection scrolls to it.

import { useEffect, useRef } from "preact/hooks";

export const NARROW = "(max-width: 760px)";

export function reveal(panel: HTMLElement | null): void {
  if (window.matchMedia(NARROW).matches) panel?.scrollIntoView({ block: "start" });
}

// The same for a selection by a link.
export function useReveal<T extends HTMLElement>(selected: string): { current: T | null } {
  const panel = useRef<T>(null);
  const before = useRef(selected);
  useEffect(() => {
    if (selected && selected !== before.current) reveal(panel.current);
    before.current = selected;
  }, [selected]);
  return panel;
}
