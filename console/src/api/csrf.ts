// The cookies that scripts can read: a session's CSRF token, which lives and dies with it, and for a minute why a
// sign-in through a provider was refused.

import { Problem } from "./problem";

export function csrfToken(cookies: string = document.cookie): string | null {
  const found = /(?:^|; )(?:__Host-)?gpuaas-csrf=([^;]*)/.exec(cookies);
  return found?.[1] ? decodeURIComponent(found[1]) : null;
}

/** Told once: whoever has read it takes it away. */
export function takeRefusal(): Problem | null {
  const found = /(?:^|; )((?:__Host-)?gpuaas-refused)=([^;]*)/.exec(document.cookie);
  if (!found?.[2]) return null;
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store is not in every browser
  document.cookie = `${found[1]}=; path=/; max-age=0${found[1]?.startsWith("__Host-") ? "; secure" : ""}`;
  try {
    const said = JSON.parse(decodeURIComponent(found[2]));
    return new Problem(said.status, said.code, said.detail, said.way_out, said.correlation_id);
  } catch {
    return null;
  }
}
