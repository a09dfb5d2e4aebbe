// Whom we call on a stranger's word.
import { describe, expect, it } from "vitest";
import { isPublicHost, refuseTarget } from "../../src/http/webhook-target.ts";

const allowed = ["localhost", "127.0.0.1", "hooks.internal:9000"];

describe("a webhook's target", () => {
  it.each([
    "https://hooks.app.com/done?job=1#x",
    "https://HOOKS.App.com/",
    "https://app.com:443/",
    "https://a-b.co.uk/",
    "https://xn--bcher-kva.de/",
    "https://bücher.de/",
    "https://sub.deep.host.dev./",
    "https://10.0.0.1.app.com/",
    "https://localhost.app.com/",
  ])("may be %s", (url) => expect(refuseTarget(url, [])).toBeUndefined());

  it.each([
    "",
    "hooks.app.com",
    "/hook",
    "http://hooks.app.com/",
    "ftp://hooks.app.com/",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/plain,x",
    "https://",
    "https://user@hooks.app.com/",
    "https://user:pass@hooks.app.com/",
    "https://:pass@hooks.app.com/",
    "https://hooks.app.com:8443/",
    "https://hooks.app.com:22/",
    "https://hooks.app.com:80/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.1./",
    "https://１２７.０.０.１/",
    "https://①②⑦.0.0.1/",
    "https://%31%32%37.0.0.1/",
    "https://8.8.8.8/",
    "https://169.254.169.254/latest/meta-data/",
    "https://0/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://[2606:4700:4700::1111]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://app.localhost/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://router.home.arpa/",
    "https://nas.lan/",
    "https://wiki.intranet/",
    "https://wiki.corp/",
    "https://box.home/",
    "https://1.0.0.127.in-addr.arpa/",
    "https://hidden.onion/",
    "https://app.test/",
    "https://intranet/",
    "https://com/",
    "https://127.0.0.1.nip.io/",
    "https://kubernetes.default.svc/",
    "https://a.svc.cluster/",
    "https://db.service.consul/",
    "https://printer.lan/",
    "https://10-0-0-1.traefik.me/",
    "https://7f000001.c0a80001.rbndr.us/",
    "https://192-168-1-1.my.local-ip.co/",
    "https://localho.st/",
    "https://app.localtest.me/",
    "https://a..b.com/",
    "https://app.123/",
    "https://host.c/",
  ])("is never %s", (url) => expect(refuseTarget(url, [])).toBeTypeOf("string"));

  it.each([
    ["http://localhost:3000/hook", true],
    ["https://localhost/hook", true],
    ["http://127.0.0.1:8787/", true],
    ["http://2130706433/", true],
    ["http://hooks.internal:9000/", true],
    ["http://hooks.internal/", false],
    ["http://hooks.internal:9001/", false],
    ["http://sub.localhost/", false],
    ["http://localhost.app.com/", false],
    ["http://user@localhost/", false],
    ["ftp://localhost/", false],
    ["http://hooks.app.com/", false],
    ["https://hooks.app.com/", true],
  ])("with hosts of the operator's: %s → %s", (url, fine) => {
    expect(refuseTarget(url, allowed) === undefined).toBe(fine);
  });

  it("says of a host alone whether it is public", () => {
    expect(["cdn.app.com", "app.com."].map(isPublicHost)).toEqual([true, true]);
    expect(["", ".", "com", "127.0.0.1", "[::1]", "a.local", "*.app.com", "a b.com"].map(isPublicHost)).not.toContain(
      true,
    );
  });
});
