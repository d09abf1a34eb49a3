export function largest(numbers) {
  return Math.max(...numbers);
}
