const SPELLED = { ß: "ss", ø: "o", æ: "ae", œ: "oe", đ: "d", ł: "l" };
const LIMIT = 60;

export function slugify(title) {
  const slug = title
    .toLowerCase()
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .replace(/[ßøæœđł]/g, (letter) => SPELLED[letter])
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  if (slug === "") return "untitled";
  if (slug.length <= LIMIT) return slug;
  const cut = slug.lastIndexOf("-", LIMIT);
  return cut > 0 ? slug.slice(0, cut) : slug.slice(0, LIMIT);
}
