// The cookies that scripts can read: the CSRF token of the session, and for a minute the reason why a sign-in through
// a provider was refused.

import { Problem } from "./problem";

export function csrfToken(cookies: string = document.cookie): string | null {
  const found = /(?:^|; )(?:__Host-)?gpuaas-csrf=([^;]*)/.exec(cookies);
  return found?.[1] ? decodeURIComponent(found[1]) : null;
}

/** Read once: the cookie is deleted with it. */
export function takeRefusal(): Problem | null {
  const found = /(?:^|; )((?:__Host-)?gpuaas-refused)=([^;]*)/.exec(document.cookie);
  if (!found?.[2]) return null;
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store is not in every browser
  document.cookie = `${found[1]}=; path=/; max-age=0${found[1]?.startsWith("__Host-") ? "; secure" : ""}`;
  try {
    const refusal = JSON.parse(decodeURIComponent(found[2]));
    return new Problem(refusal.status, refusal.code, refusal.detail, refusal.way_out, refusal.correlation_id);
  } catch {
    return null;
  }
}
