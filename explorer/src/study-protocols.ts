// The protocols of a study file as names and settings of the page.
import { PROTOCOLS, protocolKey, settingsOf, type Settings } from "./protocols";
import { DEFAULT } from "./scene";
import { refuse, table, type Table } from "./study-tables";

/** Returns the table of a protocol: by its kind or by its controller, as in a list of names, or as it is. */
export function protocolTable(where: string, entry: unknown): Table {
  if (typeof entry === "string") return { ...(PROTOCOLS[entry]?.key ?? { kind: entry }), name: entry };
  return { ...table(where, entry) };
}

/** Collects the protocols of a study, and the settings that the page has once for all of them. */
export class StudyProtocols {
  readonly settings: Partial<Settings> = {};
  private readonly found: { where: string; entry: Table; name: string }[] = [];

  /** Returns the page's name of a protocol, or throws with the first key that the page cannot show. */
  add(where: string, { name: _, label: __, ...entry }: Table): string {
    const keyOf = (name: string): Table => protocolKey(name, { ...DEFAULT, ...settingsOf(name, entry) });
    const names = Object.keys(PROTOCOLS);
    const found = names.find((name) => differing(entry, keyOf(name)) === undefined);
    if (found === undefined) {
      const controller = classOf(entry["congestion"]);
      if (controller !== undefined) {
        return refuse(`${where}.congestion`, `"${controller}" is a class in Python: longfat explore STUDY runs it with the native engine`);
      }
      // The key that separates the entry from the most similar protocol of the page.
      const same = (name: string): number => Object.keys(entry).filter((key) => equal(entry[key], keyOf(name)[key])).length;
      const nearest = names.reduce((best, name) => (same(name) > same(best) ? name : best));
      const key = differing(entry, keyOf(nearest))!;
      return refuse(`${where}.${key}`, key in entry ? undefined : "the key is missing: the explorer cannot show its default");
    }
    const settings = settingsOf(found, entry);
    for (const [setting, value] of Object.entries(settings)) {
      const before = this.settings[setting as keyof Settings];
      if (before !== undefined && before !== value) {
        const name = setting === "window" ? "ARQ window" : setting;
        refuse(`protocols.${setting}`, `the page has one ${name}, the study has ${before}, ${value}`);
      }
    }
    Object.assign(this.settings, settings);
    this.found.push({ where, entry, name: found });
    return found;
  }

  /** Throws if a protocol lacks a setting that another one has. */
  check(scene: Settings): void {
    for (const { where, entry, name } of this.found) {
      const shown = protocolKey(name, scene);
      const key = differing(entry, shown);
      if (key !== undefined) refuse(`${where}.${key}`, `the page has one value for all protocols, ${JSON.stringify(shown[key])}`);
    }
  }
}

/** Returns the Python class of a controller, by its name with a colon. */
function classOf(congestion: unknown): string | undefined {
  const name = typeof congestion === "object" && congestion !== null ? (congestion as Table)["kind"] : congestion;
  return typeof name === "string" && name.includes(":") ? name : undefined;
}

/** Returns the first key in which two tables differ. */
function differing(one: Table, other: Table): string | undefined {
  return [...Object.keys(one), ...Object.keys(other)].find((key) => !equal(one[key], other[key]));
}

export const equal = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
