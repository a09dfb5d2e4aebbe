// What the terminal shows of the race: a bar for each, with a mark where the limit lies.
import { type Contestant, calls, limit } from "./contest.ts";

const width = 60;
const nameWidth = 16;
const cells = (count: number) => Math.round((count / calls) * width);

export function barOf({ name, passed }: Contestant): string {
  const marks = Array.from({ length: width }, (_, cell) => {
    if (cell < cells(passed)) return cell < cells(limit) ? "█" : "▓";
    return cell === cells(limit) ? "│" : "·";
  });
  return `${name.padEnd(nameWidth)} ${marks.join("")} ${String(passed).padStart(3)} passed`;
}

export function lineOf({ name, passed, refused }: Contestant): string {
  const over = passed - limit;
  const verdict = over === 0 ? "exact" : `${Math.abs(over)} too ${over > 0 ? "many" : "few"}`;
  return `${name.padEnd(nameWidth)} ${passed} of ${calls} passed, ${refused} refused: ${verdict}`;
}

/** Draws the bars over themselves until it is told to stop. */
export function drawLive(contestants: readonly Contestant[]): () => void {
  const draw = () => process.stdout.write(contestants.map((one) => `\x1b[2K${barOf(one)}\n`).join(""));
  const again = () => {
    process.stdout.write(`\x1b[${contestants.length}A`);
    draw();
  };
  draw();
  const timer = setInterval(again, 40);
  return () => {
    clearInterval(timer);
    again();
  };
}
