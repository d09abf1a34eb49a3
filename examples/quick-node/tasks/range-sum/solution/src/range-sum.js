export function rangeSum(low, high) {
  let sum = 0;
  for (let n = low; n <= high; n++) sum += n;
  return sum;
}
