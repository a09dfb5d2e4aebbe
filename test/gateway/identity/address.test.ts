// Where an anonymous visitor pays: one prefix for each network, in whatever spelling it comes.
import { describe, expect, it } from "vitest";
import { addressPayer } from "../../../src/gateway/identity/address.ts";
import { addressPayerPattern } from "../../../src/gateway/identity/owners.ts";

describe("the payer of an address", () => {
  it.each([
    ["203.0.113.7", "addr:203.0.113.7/32"],
    ["0.0.0.0", "addr:0.0.0.0/32"],
    ["::ffff:203.0.113.7", "addr:203.0.113.7/32"],
    ["::FFFF:cb00:7107", "addr:203.0.113.7/32"],
    ["2001:db8:1:2:3:4:5:6", "addr:2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002:ffff::", "addr:2001:db8:1:2::/64"],
    ["2001:db8:1:2::1", "addr:2001:db8:1:2::/64"],
    ["2001:db8::1", "addr:2001:db8:0:0::/64"],
    ["::", "addr:0:0:0:0::/64"],
    ["::1", "addr:0:0:0:0::/64"],
    ["64:ff9b::203.0.113.7", "addr:64:ff9b:0:0::/64"],
  ])("%s is %s", (address, payer) => {
    expect(addressPayer(address)).toBe(payer);
    expect(payer).toMatch(addressPayerPattern);
  });

  it.each(
    [
      ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", "1.2.3.4, 5.6.7.8", "a.b.c.d", "localhost"],
      [
        "1:2:3",
        ":",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8",
        "12345::",
        "g::",
        "fe80::1%eth0",
        "[::1]",
      ],
    ].flat(),
  )("%o is none", (address) => {
    expect(addressPayer(address)).toBeUndefined();
  });
});
