/** Shapes, so that a state is known without its colour. All are drawn in a box of 16. */
const paths = {
  check: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm3.2 4.6L7 9.8 4.9 7.7l-1 1L7 11.8l5.2-5.2Z",
  play: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1ZM6.3 4.8v6.4L11.5 8Z",
  pause: "M3 2h4v12H3Zm6 0h4v12H9Z",
  clock:
    "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm0 1.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm-.7 2h1.4v3.2l2.3 1.4-.7 1.2-3-1.8Z",
  cross:
    "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Zm.4 3.5-1 1L7 8l-2.5 2.5 1 1L8 9l2.5 2.5 1-1L9 8l2.5-2.5-1-1L8 7Z",
  slash:
    "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm0 1.6a5.4 5.4 0 0 0-4.2 8.7l7.5-7.5A5.4 5.4 0 0 0 8 2.600Zm4.200 2.100-7.500 7.500A5.400 5.400 0 0 0 12.200 4.700Z",
  warning: "M8 1 15.500 14.500H.500ZM7.200 6v4h1.600V6Zm0 5.200v1.600h1.600v-1.600Z",
  search:
    "M7 1a6 6 0 0 1 4.700 9.700l3.500 3.500-1.100 1.100-3.500-3.500A6 6 0 1 1 7 1Zm0 1.600a4.400 4.400 0 1 0 0 8.800 4.400 4.400 0 0 0 0-8.800Z",
  square: "M2 2h12v12H2Z",
  dashed: "M7 1h2v3H7ZM7 12h2v3H7ZM1 7h3v2H1ZM12 7h3v2h-3ZM3 3h2v2H3ZM11 3h2v2h-2ZM3 11h2v2H3ZM11 11h2v2h-2Z",
  sweeps: "M1 2h14v3H1Zm0 4.500h10v3H1ZM1 11h6v3H1Z",
  machines: "M1 2h14v5H1Zm2 1.800v1.400h2V3.800ZM1 9h14v5H1Zm2 1.800v1.400h2v-1.400Z",
  probes: "M1 14V9h3v5Zm5.500 0V2h3v12Zm5.500 0V6h3v8Z",
  settings: "M1 3h8v2H1Zm10-1.500h2V3h2v2h-2v1.500h-2ZM1 11h2V9.500h2V11h10v2H5v1.500H3V13H1Z",
  plus: "M7 1h2v6h6v2H9v6H7V9H1V7h6Z",
  link: "M9 1h6v6h-2V4.400L7.700 9.700 6.300 8.300 11.600 3H9ZM2 3h4v2H4v7h7v-2h2v4H2Z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16, color = "currentColor" }: { name: IconName; size?: number; color?: string }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" fill={color} fillRule="evenodd">
      <path d={paths[name]} />
    </svg>
  );
}
