// Calls tools of the host: await callTool("NAME", {...}) gives {result}, or {error} if the tool failed.
// What is refused is thrown; its "approval" is the request, if a person has to approve the call first.
import { request } from "node:http"; // it waits as long as a person does; fetch gives up after minutes

const url = process.env.TOOL_PROXY_URL ?? "http://tools.cofferdam.internal";

function post(body) {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    const asked = request(url + "/call_tool", { method: "POST", headers, agent: false }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => resolve({ status: answer.statusCode, text: Buffer.concat(parts).toString() }));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

export async function callTool(tool, args = {}) {
  const answer = await post(JSON.stringify({ tool, args }));
  const said = JSON.parse(answer.text);
  if (answer.status !== 200) throw Object.assign(new Error("Tool call denied: " + said.error), { approval: said.approval });
  return said;
}
