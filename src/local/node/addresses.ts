/** Addresses for Pods, from a network of 16 bits; one that was given back is used again as late as possible. */
export class Addresses {
  readonly #subnet: string;
  readonly #taken = new Set<string>();
  #last = 1;

  /** `subnet`: the first two numbers. The first address is the gateway's. */
  constructor(subnet: string) {
    this.#subnet = subnet;
  }

  take(): string {
    for (let tries = 0; tries < 0xfffd; tries++) {
      this.#last = this.#last >= 0xfffe ? 2 : this.#last + 1;
      const address = `${this.#subnet}.${this.#last >> 8}.${this.#last & 0xff}`;
      if (this.#taken.has(address)) continue;
      this.#taken.add(address);
      return address;
    }
    throw new Error("no address is left for another Pod");
  }

  giveBack(address: string): void {
    this.#taken.delete(address);
  }
}
