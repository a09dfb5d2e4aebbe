// Owner-bound handles: what is minted opens, and nothing else does. The attack table, then every single character.
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { SigningKeys, signFields } from "../../../src/gateway/identity/signing.ts";
import { admittedAt, asSync, isAsSync, newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { Handles, handlesOf, isUpstreamId } from "../../../src/gateway/jobs/handle.ts";
import { HmacKey } from "../../../src/http/hmac.ts";
import { amount } from "../../support/amount.ts";
import { configOf } from "../../support/callers.ts";

const secret = "signing-secret-of-the-handles-0123456789";
const older = "signing-secret-of-last-year-0123456789";
/** Each has a memory of its own: what one isolate verified, another has not. */
const isolate = (...secrets: string[]) => new Handles(new SigningKeys(secrets.length > 0 ? secrets : [secret]));

const key = { owner: "user:ada", model: "painter" };
const admission = newAdmission(1_763_000_000_000, new Uint8Array(8).fill(7));
const job = { upstreamId: "sync-8f2c-41e1-u1", admission };
const handle = isolate().mint(key, job);
const [ref = "", , mac = ""] = handle.split(".");
const shared = isolate().mint(key, { upstreamId: "8f2c-41e1-u1", admission: asSync(admission) });
const hook = { meter: "ab".repeat(32), admission };
const hookId = isolate().mintHook(hook);

describe("an admission", () => {
  it("says when it was, and sorts by that", () => {
    expect(admittedAt(admission)).toBe(1_763_000_000_000);
    const ids = [3, 1, 2, 2 ** 40, 2 ** 48 - 1].map((now) => newAdmission(now));
    expect([...ids].sort().map(admittedAt)).toEqual([1, 2, 3, 2 ** 40, 2 ** 48 - 1]);
  });

  it("can be marked as a sync call's, which changes neither its moment nor its chance", () => {
    const marked = asSync(admission);
    expect([admission, marked, asSync(marked)].map(isAsSync)).toEqual([false, true, true]);
    expect(asSync(marked)).toBe(marked);
    expect(admittedAt(marked)).toBe(admittedAt(admission));
    expect(new Set([...Array(32)].map((_, n) => asSync(newAdmission(1, new Uint8Array(8).fill(n * 8))))).size).toBe(32);
  });

  it("is never the same twice", () => {
    expect(new Set([...Array(1000)].map(() => newAdmission(1))).size).toBe(1000);
  });
});

describe("a handle", () => {
  it("opens for its owner and model, here and in an isolate that has not seen it", () => {
    expect(handle).toMatch(/^sync-8f2c-41e1-u1\.[0-9a-z]{23}\.[0-9a-f]{32}$/);
    expect(isolate().verify(key, handle)).toEqual(job);
  });

  it("begins as a sync job's id does where its admission is marked, and opens with the upstream's own id", () => {
    const marked = { upstreamId: "x".repeat(128), admission: asSync(admission) };
    const minted = isolate().mint(key, marked);
    expect(minted).toMatch(/^sync-x{128}\.[0-9a-z]{23}\.[0-9a-f]{32}$/);
    expect(isolate().verify(key, minted)).toEqual(marked);
    const nested = isolate().mint(key, { ...job, admission: asSync(admission) });
    expect(isolate().verify(key, nested)).toEqual({ ...job, admission: asSync(admission) });
  });

  it("costs no cryptography once it was verified", () => {
    const handles = isolate();
    expect(handles.verify(key, handle)).toEqual(job);
    const sign = vi.spyOn(HmacKey.prototype, "signHex");
    expect(handles.verify(key, handle)).toEqual(job);
    expect(sign).not.toHaveBeenCalled();
    expect(handles.verify(key, handles.mint(key, { ...job, upstreamId: "other" }))?.upstreamId).toBe("other");
    expect(sign).toHaveBeenCalled();
    sign.mockRestore();
  });

  it("opens under either secret of a rotation, and is minted under the first", () => {
    const old = isolate(older).mint(key, job);
    expect(isolate(secret, older).verify(key, old)).toEqual(job);
    expect(isolate(secret, older).mint(key, job)).toBe(handle);
  });

  it("is one of a kind for each Config", () => {
    const config = configOf();
    expect(handlesOf(config)).toBe(handlesOf(config));
    expect(handlesOf(config)).not.toBe(handlesOf(configOf()));
  });

  it.each(["a b", "a.b", "a/b", "", "x".repeat(129), "é", "a\n"])("is not made of the id %o", (id) => {
    expect(isUpstreamId(id)).toBe(false);
    expect(() => isolate().mint(key, { upstreamId: id, admission })).toThrow(TypeError);
  });

  it("is not made of what is no string", () => {
    expect([undefined, null, 7, {}, ["a"]].some(isUpstreamId)).toBe(false);
  });
});

const otherAdmission = newAdmission(1_763_000_000_001, new Uint8Array(8).fill(7));
const attacks: [attack: string, handle: string, by?: Partial<typeof key>][] = [
  ["another user's", handle, { owner: "user:eve" }],
  ["an operator's eyes", handle, { owner: "operator" }],
  ["an anonymous owner of that name", handle, { owner: "anon:ada" }],
  ["an owner in upper case", handle, { owner: "user:Ada" }],
  ["an owner who borrows from the model", handle, { owner: "user:adap", model: "ainter" }],
  ["no owner", handle, { owner: "" }],
  ["another model's", handle, { model: "poet" }],
  ["no model", handle, { model: "" }],
  ["another ref", `${ref}x.${admission}.${mac}`],
  ["a ref that lost its beginning", `${ref.slice(5)}.${admission}.${mac}`],
  ["no ref", `.${admission}.${mac}`],
  ["a ref with a dot", `a.${handle}`],
  ["a ref that is a path", `../${ref}.${admission}.${mac}`],
  ["another admission", `${ref}.${otherAdmission}.${mac}`],
  ["the mark of a sync call put on", `${ref}.${asSync(admission)}.${mac}`],
  ["the mark of a sync call taken off", shared.replace(asSync(admission), admission)],
  ["a sync call's beginning taken off", shared.slice("sync-".length)],
  ["an admission in upper case", `${ref}.${admission.toUpperCase()}.${mac}`],
  ["no admission", `${ref}..${mac}`],
  ["no admission, nor its dot", `${ref}.${mac}`],
  ["an admission with a letter that is none", `${ref}.u${admission.slice(1)}.${mac}`],
  ["the mac in upper case", `${ref}.${admission}.${mac.toUpperCase()}`],
  ["the mac truncated", handle.slice(0, -1)],
  ["the mac truncated to a byte", `${ref}.${admission}.${mac.slice(0, 2)}`],
  ["no mac", `${ref}.${admission}.`],
  ["no mac, nor its dot", `${ref}.${admission}`],
  ["a longer mac", `${handle}0`],
  ["a mac of zeros", `${ref}.${admission}.${"0".repeat(32)}`],
  ["the mac of another job", `${ref}.${admission}.${isolate().mint(key, { upstreamId: "x", admission }).slice(-32)}`],
  ["parts swapped", `${mac}.${admission}.${ref}`],
  ["a line break behind it", `${handle}\n`],
  ["a space before it", ` ${handle}`],
  ["a percent-encoded dot", handle.replace(".", "%2e")],
  ["a zero byte", `${ref}\0.${admission}.${mac}`],
  ["a full-width digit", `${ref}.${admission}.${mac.slice(0, -1)}０`],
  ["10 KB of it", `${"a".repeat(10_240)}.${admission}.${mac}`],
  ["nothing", ""],
  ["dots", "...."],
  ["the upstream's own id", ref],
  ["one of a secret that was rotated out", isolate(older).mint(key, job)],
  ["a hook", hookId],
  ["a hook of an owner's name", isolate().mintHook({ meter: ref, admission })],
  ["the mac of a hook over the same fields", `${ref}.${admission}.${hookMac()}`],
];

function hookMac(): string {
  const [hookKey] = new SigningKeys([secret]).of("hook");
  return signFields(hookKey, [key.owner, key.model, ref, admission], 128);
}

describe("a handle does not open as", () => {
  it.each(attacks)("%s", (_, attack, by = {}) => {
    const handles = isolate();
    expect(handles.verify(key, handle)).toEqual(job);
    expect(handles.verify({ ...key, ...by }, attack)).toBeUndefined();
  });

  it("what another owner, model and handle spell together", () => {
    const handles = isolate();
    const spaced = { owner: "user:a 1", model: "m" };
    const minted = handles.mint(spaced, job);
    expect(handles.verify({ owner: "user:a ", model: "1m" }, minted)).toBeUndefined();
    expect(handles.verify({ owner: "user:a", model: " 1m" }, minted)).toBeUndefined();
  });
});

describe("a hook", () => {
  it("opens for anybody who was told it", () => {
    expect(isolate().verifyHook(hookId)).toEqual(hook);
    expect(isolate(older, secret).verifyHook(hookId)).toEqual(hook);
  });

  it.each<[string, string]>([
    ["a handle", handle],
    ["another meter", hookId.replace(/^ab/, "cd")],
    ["another admission", hookId.replace(admission, otherAdmission)],
    ["truncated", hookId.slice(0, -1)],
    ["upper case", hookId.toUpperCase()],
    ["too long", `${"a".repeat(10_240)}${hookId}`],
  ])("does not open as %s", (_, attack) => {
    expect(isolate().verifyHook(attack)).toBeUndefined();
  });
});

describe("every handle", () => {
  const idCharacters = [..."ABCXYZabcxyz0189_-"];
  const refs = fc.string({ unit: fc.constantFrom(...idCharacters), minLength: 1, maxLength: 128 });
  const owners = fc.string({ unit: "grapheme", minLength: 1, maxLength: 64 }).filter((owner) => owner.isWellFormed());
  const moments = fc.integer({ min: 0, max: 2 ** 48 - 1 });

  it("comes back as what it was made of", () => {
    fc.assert(
      fc.property(refs, owners, refs, moments, (id, owner, model, now) => {
        const made = { upstreamId: id, admission: newAdmission(now) };
        const minted = isolate().mint({ owner, model }, made);
        expect(isolate().verify({ owner, model }, minted)).toEqual(made);
        expect(admittedAt(made.admission)).toBe(now);
      }),
      { numRuns: amount(2000) },
    );
  });

  it("is refused with any one character changed, left out or put in", () => {
    const unit = fc.oneof(
      fc.constantFrom(...idCharacters, ".", "f", "F"),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.nat(handle.length - 1), unit, fc.constantFrom(0, 1), (at, character, removed) => {
        const changed = handle.slice(0, at) + character + handle.slice(at + removed);
        fc.pre(changed !== handle);
        expect(isolate().verify(key, changed)).toBeUndefined();
        expect(isolate().verify(key, handle.slice(0, at) + handle.slice(at + 1))).toBeUndefined();
      }),
      { numRuns: amount(5000) },
    );
  });

  it("belongs to one owner and one model", () => {
    fc.assert(
      fc.property(owners, refs, owners, refs, (owner, model, otherOwner, otherModel) => {
        fc.pre(owner !== otherOwner || model !== otherModel);
        const handles = isolate();
        const minted = handles.mint({ owner, model }, job);
        expect(handles.verify({ owner: otherOwner, model: otherModel }, minted)).toBeUndefined();
      }),
      { numRuns: amount(2000) },
    );
  });
});
