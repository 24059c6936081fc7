// A drawing context that writes SVG: the part of the canvas interface that the drawings use.

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const short = (value: number): string => String(Math.round(value * 100) / 100);
const ANCHORS: Readonly<Record<string, string>> = { center: "middle", right: "end", end: "end" };

/** Records shapes as SVG elements. */
export class SvgContext {
  strokeStyle = "#000";
  fillStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "12px system-ui, sans-serif";
  textAlign = "left";
  private readonly elements: string[] = [];
  private path = "";
  private dash: readonly number[] = [];

  setTransform(): void {
    // Drawings set the scale of the display, which a vector graphic does not have.
  }

  clearRect(): void {
    this.elements.length = 0;
  }

  setLineDash(dash: readonly number[]): void {
    this.dash = dash;
  }

  beginPath(): void {
    this.path = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  arc(x: number, y: number, radius: number): void {
    const [r, d] = [short(radius), short(2 * radius)];
    this.path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${d} 0a${r} ${r} 0 1 0 -${d} 0`;
  }

  closePath(): void {
    this.path += "z";
  }

  stroke(): void {
    this.add(`<path d="${this.path}" fill="none"${this.stroked()}/>`);
  }

  fill(): void {
    this.add(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.beginPath();
    this.rect(x, y, width, height);
    this.stroke();
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.add(`<rect ${size(x, y, width, height)} fill="${this.fillStyle}"${this.alpha()}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    const anchor = ANCHORS[this.textAlign] ?? "start";
    const [points] = /[\d.]+(?=px)/.exec(this.font) ?? ["12"];
    const weight = this.font.startsWith("bold") ? ` font-weight="bold"` : "";
    const place = `x="${short(x)}" y="${short(y)}" font-size="${points}"${weight} text-anchor="${anchor}"`;
    this.add(`<text ${place} fill="${this.fillStyle}"${this.alpha()}>${escaped(text)}</text>`);
  }

  measureText(text: string): { width: number } {
    return { width: text.length * 6.5 };
  }

  /** Returns the elements as a group at a place. */
  group(x: number, y: number): string {
    return `<g transform="translate(${short(x)} ${short(y)})">\n${this.elements.join("\n")}\n</g>`;
  }

  private add(element: string): void {
    this.elements.push(element);
  }

  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
  }

  private stroked(): string {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return ` stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${dash}${this.alpha()}`;
  }
}

const size = (x: number, y: number, width: number, height: number): string =>
  `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;

/** Returns a canvas of a size for the functions that draw, whose context writes SVG. */
export function svgCanvas(width: number, height: number): { canvas: HTMLCanvasElement; context: SvgContext } {
  const context = new SvgContext();
  const canvas = { clientWidth: width, clientHeight: height, width, height, getContext: () => context };
  return { canvas: canvas as unknown as HTMLCanvasElement, context };
}

/** Returns a whole SVG file. */
export function svgFile(width: number, height: number, background: string, groups: readonly string[]): string {
  const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const back = `<rect width="100%" height="100%" fill="${background}"/>`;
  const open = `<svg xmlns="http://www.w3.org/2000/svg" ${box} font-family="system-ui, sans-serif">`;
  return [open, back, ...groups, "</svg>", ""].join("\n");
}
