export function palindrome(text) {
  const lower = text.toLowerCase();
  return lower === [...lower].reverse().join('');
}
