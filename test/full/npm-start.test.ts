// What once ended `npm start`, and a storm, in full: a first round for the memory it takes, and two more.
process.env["SERVED_BY"] = "npm start";
const { describeRounds } = await import("../e2e/support/gateway.ts");
await import("../e2e/outlived.test.ts");
describeRounds({ more: 2 });

export {};
