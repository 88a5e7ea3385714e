// Scrolls content that is wider than the window, such as tables on a phone, also by keyboard.

import type { ReactNode } from "react";

export function Scroll({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it with the arrow keys
    <section className="scroll-x" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
