// A display name and a short name; the short name is derived from the name until it is edited.

export interface Named {
  name: string;
  slug: string;
}

const SLUG = /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/;

export function slugOf(name: string): string {
  const plain = name.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "")
    .slice(0, 40)
    .replace(/-+$/, "");
}

export function named({ name, slug }: Named): boolean {
  return Boolean(name.trim()) && SLUG.test(slug);
}

/** The short name follows the name until it is edited. */
export function renamed({ name, slug }: Named, next: string): Named {
  return { name: next, slug: slug === slugOf(name) ? slugOf(next) : slug };
}
