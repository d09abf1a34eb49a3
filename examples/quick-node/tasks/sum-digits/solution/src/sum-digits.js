export function sumDigits(n) {
  return n < 10 ? n : (n % 10) + sumDigits(Math.floor(n / 10));
}
