// A sparkline: the rate of the last minute, as wide as what it belongs to.

const HEIGHT = 12;

export function Spark(props: { values: number[]; wide: number }) {
  const { values, wide } = props;
  const most = Math.max(...values, 1e-9);
  if (values.length < 2 || !values.some((one) => one > 0)) return null;
  const points = values.map((one, at) => `${((at * wide) / (values.length - 1)).toFixed(1)},${(HEIGHT - 1 - (one / most) * (HEIGHT - 2)).toFixed(1)}`);
  return (
    <svg class="spark" width={wide} height={HEIGHT} aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}
