export function reverse(text) {
  return [...text].reverse().join('');
}
