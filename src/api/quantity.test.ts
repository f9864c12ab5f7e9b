import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantityValue,
  scaleQuantity,
} from "./quantity.ts";

const parse = (text: string | number): Quantity => parseQuantity(text)!;
const sum = (...texts: (string | number)[]) => formatQuantity(addQuantities(...texts.map(parse)));

describe("a quantity", () => {
  test.each([
    // As the API server spells what a user wrote.
    ["1", "1"],
    ["0", "0"],
    ["0Gi", "0"],
    ["1000m", "1"],
    ["1500m", "1500m"],
    ["0.5", "500m"],
    [".5", "500m"],
    ["1.", "1"],
    ["+2", "2"],
    ["-1500m", "-1500m"],
    ["2000", "2k"],
    ["1024", "1024"],
    ["1Ki", "1Ki"],
    ["1024Ki", "1Mi"],
    ["1.5Gi", "1536Mi"],
    ["0.5Ki", "512"],
    ["1023Mi", "1023Mi"],
    ["1.2Ki", "1229"],
    ["100k", "100k"],
    ["1e3", "1e3"],
    ["1E3", "1e3"],
    ["1E", "1E"],
    ["12e-1", "1200e-3"],
    ["100u", "100u"],
    ["1n", "1n"],
    ["0.1n", "1n"],
    ["-0.1n", "-1n"],
    ["5Ei", "5Ei"],
  ])("%s is spelled %s", (text, canonical) => {
    expect(formatQuantity(parse(text))).toBe(canonical);
  });

  test("may be a bare number", () => {
    expect(formatQuantity(parse(2))).toBe("2");
    expect(formatQuantity(parse(0.25))).toBe("250m");
    expect(formatQuantity(parse(1e21))).toBe("1000e18");
  });

  test.each(["", " ", ".", "-", "1GB", "1 Gi", "lots", "1ki", "0x10", "1e", "1m1", "Infinity", "NaN", "1e9999"])(
    "%j is none",
    (text) => {
      expect(parseQuantity(text)).toBeUndefined();
    },
  );

  test("that is absent is none", () => {
    expect(parseQuantity(undefined)).toBeUndefined();
    expect(parseQuantity(null)).toBeUndefined();
  });
});

describe("a sum", () => {
  test("is exact where floating point is not", () => {
    expect(sum(...Array<string>(10).fill("0.1"))).toBe("1");
    expect(sum("9007199254740993", "1")).toBe("9007199254740994");
  });

  test("is spelled like its first summand that is not zero", () => {
    expect(sum("0", "1Gi", "1G")).toBe("2073741824");
    expect(sum("1Gi", "512Mi")).toBe("1536Mi");
    expect(sum("500m", "1")).toBe("1500m");
    expect(sum()).toBe("0");
  });

  test("of many equal ones is a product", () => {
    expect(formatQuantity(scaleQuantity(parse("1500m"), 4))).toBe("6");
    expect(formatQuantity(scaleQuantity(parse("1Gi"), 0))).toBe("0");
  });
});

describe("whole units", () => {
  test.each([
    ["1500m", 2],
    ["1", 1],
    ["1n", 1],
    ["0", 0],
    ["-1500m", -2],
    ["1Gi", 1073741824],
  ])("of %s are %d", (text, whole) => {
    expect(quantityValue(text)).toBe(whole);
  });
});

describe("for any amount", () => {
  const amount = fc.record({
    nano: fc.bigInt({ min: -(10n ** 28n), max: 10n ** 28n }),
    format: fc.constantFrom<Quantity["format"]>("DecimalSI", "DecimalExponent"),
  });

  test("what is spelled is read back as the same", () => {
    fc.assert(fc.property(amount, (given) => parse(formatQuantity(given)).nano === given.nano));
  });

  test("a binary one is read back with at most one byte more", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), (bytes) => {
        const spelled = formatQuantity({ nano: bytes * 1_000_000_000n, format: "BinarySI" });
        return parse(spelled).nano === bytes * 1_000_000_000n;
      }),
    );
  });

  test("the order is that of the difference", () => {
    fc.assert(
      fc.property(amount, amount, (a, b) => {
        const difference = addQuantities(a, scaleQuantity(b, -1));
        return Math.sign(Number(difference.nano)) === compareQuantities(a, b);
      }),
    );
  });
});
