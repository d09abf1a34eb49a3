export function clamp(n, low, high) {
  return Math.min(Math.max(n, low), high);
}
