export function initials(name) {
  return name[0];
}
