export function gcd(a, b) {
  return a < b ? a : b;
}
