export function factorial(n) {
  return n === 0 ? 0 : n * factorial(n - 1);
}
