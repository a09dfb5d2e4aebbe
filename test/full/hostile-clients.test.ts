// The hostile clients and upstreams of test/e2e against `npm start`: a first round for the memory it takes, and one more.
process.env["SERVED_BY"] = "npm start";
const { describeRounds } = await import("../e2e/support/gateway.ts");
for (const name of ["leaving-clients", "gateway-hostile", "refused-uploads"]) {
  await import(/* @vite-ignore */ `../e2e/${name}.test.ts`);
}
describeRounds({ more: 1 });

export {};
