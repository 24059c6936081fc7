/** Returns whether `longfat explore` serves the page with the native simulator. */
export const isNative = (): boolean => new URLSearchParams(location.search).get("engine") === "native";
