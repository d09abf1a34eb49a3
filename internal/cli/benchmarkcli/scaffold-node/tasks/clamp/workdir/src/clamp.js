export function clamp(n, low, high) {
  return n < low ? high : n > high ? low : n;
}
