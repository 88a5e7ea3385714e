// A frame for what may be wider than the window, such as tables on a phone; a keyboard can move it, too.

import type { ReactNode } from "react";

export function Scroll({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no pointer scrolls it with the arrow keys
    <section className="scroll-x" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
