// React hooks: a job as state, and what the caller has used.
import { useCallback, useEffect, useRef, useState } from "react";
import type { AnyModel, InputOf, Job, JobState, OutputOf, RunOptions, Sluice, Upload, Usage } from "./index.ts";

export interface JobView<Output> {
  readonly state: "idle" | "uploading" | "submitting" | JobState;
  readonly job?: Job<Output>;
  /** A `SluiceError`, where the gateway refused or the job failed. */
  readonly error?: Error;
  readonly progress?: unknown;
  /** The pieces of a streamed output so far. */
  readonly chunks: readonly unknown[];
  /** Pieces may be missing: the connection was lost. */
  readonly hasGap: boolean;
  readonly upload?: Upload;
}

export interface UsedJob<M extends string> extends JobView<OutputOf<M>> {
  /** The newest wins: a job that still goes on is cancelled. Resolves with the job, or with undefined where there is none. */
  run(
    input: InputOf<M>,
    options?: Pick<RunOptions, "idempotencyKey" | "policy">,
  ): Promise<Job<OutputOf<M>> | undefined>;
  /** Cancels the job, and forgets what is shown of it. */
  cancel(): void;
}

const idle: JobView<never> = { state: "idle", chunks: [], hasGap: false };

const goesOn = /^(uploading|submitting|IN_)/;

/** One job at a time. It is cancelled where the component goes, or another model is asked for. */
export function useJob<M extends AnyModel>(sluice: Sluice, model: M): UsedJob<M> {
  const [view, setView] = useState<JobView<OutputOf<M>>>(idle);
  const current = useRef<AbortController | undefined>(undefined);

  const cancel = useCallback(() => {
    current.current?.abort();
    setView(idle);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another gateway or another model ends the job
  useEffect(() => cancel, [sluice, model, cancel]);

  const run: UsedJob<M>["run"] = useCallback(
    async (input: InputOf<M>, options?: RunOptions) => {
      cancel();
      const running = new AbortController();
      const { signal } = running;
      current.current = running;
      const show = (change: (before: JobView<OutputOf<M>>) => Partial<JobView<OutputOf<M>>>) => {
        if (!signal.aborted) setView((before) => ({ ...before, ...change(before) }));
      };
      try {
        const job = await sluice.subscribe(model, input, {
          ...options,
          signal,
          // An end is shown with what came of it.
          onState: (state) => goesOn.test(state) && show(() => ({ state })),
          onProgress: (progress) => show(() => ({ progress })),
          onChunk: (chunk) => show(({ chunks }) => ({ chunks: [...chunks, chunk] })),
          onGap: () => show(() => ({ hasGap: true })),
          onUpload: (upload) => show(() => ({ upload })),
        });
        show(() => ({ job, state: job.status }));
        return job;
      } catch (error) {
        const told = error as Error & { readonly job?: { readonly status: JobState } };
        show(() => ({ error: told, state: told.job?.status ?? "FAILED" }));
        return undefined;
      }
    },
    [sluice, model, cancel],
  );

  return { ...view, run, cancel };
}

export interface UsedUsage {
  readonly usage?: Usage;
  readonly error?: Error;
  /** Asks anew; what is shown stays until the answer is there. */
  refresh(): void;
}

export function useUsage(sluice: Sluice, { by }: { readonly by?: "day" | "model" | "day,model" } = {}): UsedUsage {
  const [shown, setShown] = useState<Omit<UsedUsage, "refresh">>({});
  const current = useRef<AbortController | undefined>(undefined);
  const refresh = useCallback(() => {
    current.current?.abort();
    const asking = new AbortController();
    const { signal } = asking;
    current.current = asking;
    sluice.usage(by ? { by, signal } : { signal }).then(
      (usage) => signal.aborted || setShown({ usage }),
      (error) => signal.aborted || setShown((before) => ({ ...before, error })),
    );
  }, [sluice, by]);
  useEffect(() => {
    refresh();
    return () => current.current?.abort();
  }, [refresh]);
  return { ...shown, refresh };
}
