// Colours that differ for colour-blind readers (Okabe and Ito), and those of the page's theme.

/** Returns the colour of a configuration in the page's theme. */
export const worldColour = (place: number): string => property(`--world-${place + 1}`);

export const RETRANSMISSION = "#e69f00";
export const LOSS = "#cc3311";
export const ACK = "#7f7f7f";
export const RECEIVED = "#56b4e9";

/** Colours of flows (Tol's bright scheme, for colour-blind readers). */
const FLOWS = ["#4477aa", "#ee6677", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#bbbbbb"];

export const flowColour = (flow: number): string => FLOWS[flow % FLOWS.length]!;

export interface Theme {
  panel: string;
  text: string;
  faint: string;
  line: string;
}

/** Properties of the page's theme. Reading them from the style takes long, so they are kept until the theme changes. */
const known = new Map<string, string>();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => known.clear());

/** Returns the colours of the page's theme. */
export function theme(): Theme {
  return { panel: property("--panel"), text: property("--text"), faint: property("--faint"), line: property("--line") };
}

function property(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    known.set(name, value);
  }
  return value;
}

/** Fits a canvas to its box and the display's pixels, and returns its context in CSS pixels. */
export function prepared(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; width: number; height: number } {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return { context, width, height };
}
