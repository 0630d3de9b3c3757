// A sparkline: the rate of the last minute, in the height of a line of text.

const WIDTH = 44;
const HEIGHT = 14;

export function Spark(props: { values: number[] }) {
  const { values } = props;
  const most = Math.max(...values, 1e-9);
  if (values.length < 2 || !values.some((one) => one > 0)) return null;
  const points = values.map((one, at) => `${((at * WIDTH) / (values.length - 1)).toFixed(1)},${(HEIGHT - 1 - (one / most) * (HEIGHT - 2)).toFixed(1)}`);
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}
