// The one cookie of a session that scripts can read: it lives and dies with the session.

export function csrfToken(cookies: string = document.cookie): string | null {
  const found = /(?:^|; )(?:__Host-)?gpuaas-csrf=([^;]*)/.exec(cookies);
  return found?.[1] ? decodeURIComponent(found[1]) : null;
}
