export function palindrome(text) {
  return text === [...text].reverse().join('');
}
