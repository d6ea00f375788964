export function ProbePage() {
  return null;
}
