// A picture that comes row by row, made small enough on the way: a square of its pixels becomes one.
import type { Picture } from "../painter/picture.ts";
import { demand, heldPixels } from "./unreadable.ts";

export class Shrinking {
  readonly #width: number;
  readonly #height: number;
  readonly #square: number;
  readonly #rgb: Uint8Array;
  readonly #sums: Float64Array;
  #rows = 0;
  #summed = 0;

  constructor(width: number, height: number) {
    this.#square = Math.ceil(Math.sqrt((width * height) / heldPixels));
    this.#width = Math.floor(width / this.#square);
    this.#height = Math.floor(height / this.#square);
    demand(this.#width > 0 && this.#height > 0, "a picture without an area");
    this.#rgb = new Uint8Array(this.#width * this.#height * 3);
    this.#sums = new Float64Array(this.#width * 3);
  }

  get isFull(): boolean {
    return this.#rows === this.#height;
  }

  /** A row of the picture as it came, three bytes a pixel. What lies beyond whole squares is left out. */
  add(row: Uint8Array): void {
    if (this.isFull) return;
    const square = this.#square;
    const sums = this.#sums;
    for (let x = 0, from = 0, at = 0; x < this.#width; x++, at += 3) {
      for (let n = 0; n < square; n++, from += 3) {
        sums[at] = (sums[at] as number) + (row[from] as number);
        sums[at + 1] = (sums[at + 1] as number) + (row[from + 1] as number);
        sums[at + 2] = (sums[at + 2] as number) + (row[from + 2] as number);
      }
    }
    this.#summed++;
    if (this.#summed < square) return;
    const start = this.#rows * sums.length;
    for (let i = 0; i < sums.length; i++) this.#rgb[start + i] = (sums[i] as number) / (square * square);
    sums.fill(0);
    this.#summed = 0;
    this.#rows++;
  }

  /** As far as it came. */
  finish(): Picture {
    demand(this.#rows > 0, "no whole row");
    return { width: this.#width, height: this.#rows, rgb: this.#rgb.subarray(0, this.#width * this.#rows * 3) };
  }
}
