/** Turns a title into the last part of an address. */
export function slug(title) {
  return title.toLowerCase().replace(" ", "-");
}
