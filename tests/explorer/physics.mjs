// Plays scenes in the page's modules with the built simulator, frame by frame, and prints what the page shows.
// Input: a list of { scene: "#lesson=5" or an object, until, step } in JSON. Bundled by test_physics.py.
// Usage: node physics.bundle.mjs simulator.js
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { studyFile } from "../../explorer/src/exports";
import { Player } from "../../explorer/src/player";
import { fromHash } from "../../explorer/src/scene";

const encoded = /"([^"]*)"/.exec(readFileSync(process.argv[2], "utf8"))[1];
const { exports: simulator } = await WebAssembly.instantiate(await WebAssembly.compile(gunzipSync(Buffer.from(encoded, "base64"))), {});

const transport = {
  name: "test",
  update: "",
  async send(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const address = simulator.reserve(bytes.length);
    new Uint8Array(simulator.memory.buffer, address, bytes.length).set(bytes);
    const reply = simulator.call(address, bytes.length);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(simulator.memory.buffer, reply, simulator.reply_length())));
  },
};

function shown(world) {
  const { cwnd, ssthresh, inFlight, rtt } = world.columns;
  return {
    name: world.name,
    payload: world.groups.payloadOf(world.groups.main),
    main: world.groups.main,
    started: world.started,
    columns: { cwnd, ssthresh, inFlight, rtt },
    flows: world.flows.map(({ cwnd, ssthresh, inFlight }, flow) => ({ payload: world.groups.payloadOf(flow), cwnd, ssthresh, inFlight })),
    queues: world.queues,
    events: world.events.map(({ time, what, flow, frame, sequence, reason }) => ({ time, what, flow, frame, sequence, reason })),
    counts: { drops: world.drops, timeouts: world.timeouts, retransmissions: world.retransmissions, ...world.lost },
    over: world.over,
    lastDelivery: world.lastDelivery,
  };
}

const played = [];
for (const { scene: given, until, step } of JSON.parse(readFileSync(0, "utf8"))) {
  const scene = { ...fromHash(typeof given === "string" ? given : `#${encodeURIComponent(JSON.stringify(given))}`), speed: 0.001 };
  const player = new Player(transport, scene, (message) => {
    throw new Error(message);
  });
  await player.restart();
  if (player.detail !== "all") throw new Error("too fast for single packets");
  while (player.now < until - 1e-9 && !player.over) await player.advance(Math.min(step, until - player.now), "all");
  played.push({ study: studyFile(scene), worlds: player.worlds.map(shown) });
}
console.log(JSON.stringify(played));
