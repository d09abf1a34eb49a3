export function reverse(text) {
  return text;
}
