// The constants of VP8 that no formula gives, from RFC 6386, written as short as they pack.

const bytes = (base64: string) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** Section 13.5: what a token's eleven bits are taken to be at first; by kind of block, band and neighbours. */
export const tokenChances = bytes(
  "gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICA/Yj+/+TbgICAgIC9gfL/49X/24CAgGp+4/zW0f//gICAAWL4/+zi//+AgIC1he7+3er/moCA" +
    "gE6GyvfGtP/bgICAAbn5//P/gICAgIC4lvf/7OCAgICAgE1u2P/s5oCAgICAAWX7//H/gICAgICqi/H87NH//4CAgCV0xPPk////gICAAcz+//X/gICA" +
    "gIDPoPr/7oCAgICAgGZn5//Tq4CAgICAAZj8//D/gICAgICxh/P/6uGAgICAgFCB0//C4ICAgICAAQH/gICAgICAgID2Af+AgICAgICAgP+AgICAgICA" +
    "gICAxiPt38G7oqCRmz6DLcbdrLDcnfzdAUQvktCVp92i/9+AAZXx/93g//+AgIC4jer93tz/x4CAgFFjtfKwvvnK//+AAYHo/dbF8sT//4BjedL6ycb/" +
    "yoCAgBdbo/Kqu/fS//+AAcj2/+r/gICAgIBtsvH/5/X//4CAgCyCyf3NwP//gICAAYTv+9vR/6WAgIBeiOH72r7//4CAgBZkrvW6of/HgICAAbb5/+jr" +
    "gICAgIB8j/H/4+qAgICAgCNNtfvB0//NgICAAZ33/+zn//+AgIB5jev/4eP//4CAgC1jvPvD2f/ggICAAQH7/9X/gICAgIDLAfj//4CAgICAgIkBsf/g" +
    "/4CAgICA/Qn4+8/Q/8CAgICvDeDzwbn5xv//gEkRq92hs+yn/+qAAV/3/dS3//+AgIDvWvT609H//4CAgJtNw/i8w///gICAARjv+9rb/82AgIDJM9v/" +
    "xLqAgICAgEUuvu/J2v/kgICAAb/7//+AgICAgIDfpfn/1f+AgICAgI18+P//gICAgICAARD4//+AgICAgIC+JOb/7P+AgICAgJUB/4CAgICAgICAAeL/" +
    "gICAgICAgID3wP+AgICAgICAgPCA/4CAgICAgICAAYb8//+AgICAgIDVPvr//4CAgICAgDdd/4CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICA" +
    "gICAgICAgICAyhjV67q/3KDwr/9+Jrboqbjkrv+7gD0uituXsvCq/9iAAXDm+se/95///4CmbeT809f/roCAgCdNouistPWy//+AATTc9sbH+dz//4B8" +
    "Sr/zt8H63f//gBhHgtuaqvO2//+AAbbh+dvw/+CAgICVluL82M3/q4CAgBxsqvK3wv7f//+AAVHm/MzL/8CAgIB7ZtH3vMT/6YCAgBRfmfOkrf/LgICA" +
    "Ad74/9jVgICAgICor/b8683//4CAgC901//T1P//gICAAXns/dTW//+AgICNVNX8ycr/24CAgCpQoPCiuf/NgICAAQH/gICAgICAgID0Af+AgICAgICA" +
    "gO4B/4CAgICAgICA",
);

/** Section 13.4: whether a frame says another one instead; in the same order. */
export const changeChances = bytes(
  "////////////////////////////////////////////sPb////////////f8fz///////////n9/f////////////T8///////////q/v7/////////" +
    "//3///////////////b+///////////v/f7///////////7//v////////////j+///////////7//7///////////////////////////3+////////" +
    "///7/v7///////////7//v////////////79//7////////6//7//v////////7/////////////////////////////////////////////////////" +
    "////2f/////////////h/PH9///+/////+r68fr9//3+//////7////////////f/v7//////////+79/v7///////////j+///////////5/v//////" +
    "//////////////////////3////////////3/v////////////////////////////3+///////////8//////////////////////////////7+////" +
    "///////9//////////////////////////////79///////////6//////////////7/////////////////////////////////////////////////" +
    "////////uvv6///////////q+/T+//////////v78/3+//7///////3+///////////s/f7///////////v9/f7+//////////7+///////////+/v7/" +
    "//////////////////////////7////////////+/v////////////7////////////////////////////+////////////////////////////////" +
    "////////////////////////////////////////////////////////////////////////////////////////////////////////////////////" +
    "////////////+P/////////////6/vz+//////////j++f3///////////39///////////2/f3///////////z++/7+//////////78///////////4" +
    "/v3///////////3//v7///////////v+///////////1+/7///////////39/v////////////v9///////////8/f7////////////+////////////" +
    "//z////////////5//7//////////////v/////////////9///////////6///////////////////////////////////////////+////////////" +
    "////////////////",
);

/** Section 11.5: the nine bits of a small block's mode; by the mode above it and the one on its left. */
export const modeChances = bytes(
  "53gwWXNxeJhwmLNAfqp2LkZfr0WPUFVSSJtnODoKq9q9EQ2YkEcKJqvVkCIachoRoyzDFQqteRhQwxo+LEBVqi43E4igIc5HPxQIcnLQDAniUSgLYLZU" +
    "HRAkhrdZiWJlaqWUSLtkgp1vIEtQQmanY0o+KOqAKTUJsvGNGghraE8MG9n/VxEHSisakkmmMRedQSZpoDM0H3OAV0RHLHIzD7oXLykObra3FRHCQi0Z" +
    "ZsW9FxIWWFiTliouLcTNK2G3dVUmI7M9JzXIVxoVK+irOCIzaHJmHV1NazYgGjMBUSsfJxxVqzqlWmJAIhZ0zhciK6ZJRBlqFkCrJOFyIhMVZoS8EEx8" +
    "PhJOX1U5MjAzwWUjn9dvWS5vPJQfrNvkFRJvcHFNVbP/JnhyKCoBxPXRChltZFAIK5oBMxpHWCsdjKbVJSuaPT8em0MtRAHRjk5OEP+AIsWrKSgFZtO3" +
    "BAHdMzIRqNHAFxlSfWIqWGhVda9SX1Q1WYBkcWUtS097LzOAUasBOREFR2Y5NSkxcxUCCmb/phcGJiENeTlJGgFVKQpDik1uWi9yZR0QClWAZcQaORIK" +
    "ZmbVIhQrdRQPJKOARAEaih8kqxumJizlQ1c6qVJzGjuzPztatDumXUmaKCgVdI/RIievOS4WGIABNhElLw8QtyLfMS23LhEhtwZiDyC3QSBJcxyAF4DN" +
    "KAMJczPAEgbfVyUJcztNQBUvaDcs2gk2NYLiQFpGzSgpFxo5NjlwuAUpJqbVHiIahZh0CiCGSyAMM8D/oCszJxM13RpyIEn/HwlB6gIPAXZJWB8jQ2ZV" +
    "N7pVOBUXbzvNLSXANyZGfElmASJiZj1HJSI1H/PARTxHJkl3HN4lRC2AIgEvC/WrPhETRpJVNz5GSw8JCUD/uHcQJSslmmSjVaABPwlciBxAIMlVVgYc" +
    "BUD/GfgBOAgRhIn/N3SAOg8UUoc5GnkopDIfiZqFGSPaM2csg4N7HwaeVihAh5TgLbeAFhoRg/CaDgHRUwwNNsD/RC8cLRAVW0DeBwHFOBUnmzyKF2bV" +
    "VRpVVYCAIJKrEgsHP5CrBAT2IxsKkq6rDBqAvlAjY7RQfjYtVX4vV7AzKRQgZUuAi3aSdIBVOCkPsOxVJQk+kiQTHqv/YRsURx4Rd3b/ERKKZSY8ijdG" +
    "KxqOii09PtsBUbxAICkUdZeOFBWjcBMMPcOAMAQY",
);

/** Section 14.1: by how much a coefficient is multiplied; each is said by its distance to the one before. */
export const [meanSteps, otherSteps] = [
  "0111111011111110111010101011011111111111101111111110111111111111111111111111111111011111111111112221" +
    "2211222222224222222222323333",
  "0111111111111111111111111111111111111111111111111111111222222222222222222222222222223333333333333333" +
    "3334444444444444455645555555",
].map((distances) => {
  let step = 4;
  return Array.from(distances, (distance) => (step += Number(distance)));
}) as [number[], number[]];
