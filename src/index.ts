// The Worker's entry. No logic.
import { app } from "./app.ts";

export default app;
