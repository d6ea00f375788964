export function NewSweepPage() {
  return null;
}
