export function sumDigits(n) {
  return n % 10;
}
