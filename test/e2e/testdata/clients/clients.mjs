// Asks api.example with one of JavaScript's clients, as a program would that knows of no
// gateway.
const host = "https://api.example", key = process.env.OPENAI_API_KEY;
const bearer = { Authorization: "Bearer " + key };
const plain = name => `${host}/${name}/plain`;

const clients = {
  async fetch() {
    console.log(await (await fetch(plain("fetch"), { headers: bearer })).text());
  },
  async undici() {
    const { Agent, request } = await import("undici");
    for (const allowH2 of [false, true]) {
      const dispatcher = new Agent({ allowH2 });
      console.log(await (await request(plain("undici"), { headers: bearer, dispatcher })).body.text());
      await dispatcher.close();
    }
  },
  async https() { // chunked, with trailers both ways
    const { request } = await import("node:https");
    await new Promise((resolve, reject) => {
      const r = request(`${host}/https/trailers`, { method: "POST", headers: { ...bearer, Trailer: "X-After" } }, async a => {
        let said = "";
        for await (const part of a) said += part;
        console.log(said, a.trailers["x-sum"]);
        resolve();
      });
      r.on("error", reject);
      r.write("some");
      r.write("thing");
      r.addTrailers({ "X-After": "that" });
      r.end();
    });
  },
  async http2() {
    const { connect } = await import("node:http2");
    const session = connect(host);
    const stream = session.request({ ":path": "/http2/plain", authorization: bearer.Authorization });
    let said = "";
    for await (const part of stream) said += part;
    console.log(said);
    session.close();
  },
  async openai() {
    const { default: OpenAI } = await import("openai");
    const c = new OpenAI({ baseURL: `${host}/openai-js/v1` });
    let said = "";
    for await (const chunk of await c.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }], stream: true })) {
      if (!said) await (await fetch(`${host}/openai-js/go-on`, { headers: bearer })).text();
      said += chunk.choices[0].delta.content;
    }
    console.log(said);
  },
  async anthropic() {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const c = new Anthropic({ baseURL: `${host}/anthropic-js` });
    let said = "";
    for await (const e of c.messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] })) {
      if (e.type !== "content_block_delta") continue;
      if (!said) await (await fetch(`${host}/anthropic-js/go-on`, { headers: bearer })).text();
      said += e.delta.text;
    }
    console.log(said);
  },
  async ws() {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket("wss://api.example/ws/socket", { headers: bearer });
    await new Promise((resolve, reject) => { socket.on("open", resolve); socket.on("error", reject); });
    for (const text of ["first", "x".repeat(70_000)]) {
      const back = new Promise(resolve => socket.once("message", resolve));
      socket.send(text);
      console.log(text.length, (await back).toString() === text);
    }
    socket.close();
  },
};
await clients[process.argv[2]]();
