/**
 * smoothed is the moving average of a curve, as TensorBoard draws it: the weight, 0 to below 1, is that of
 * the average so far; the first values weigh as much as they would in a long curve.
 */
export function smoothed(values: number[], weight: number): number[] {
  let sum = 0;
  let total = 0;

  return values.map((value) => {
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);

    return sum / total;
  });
}
