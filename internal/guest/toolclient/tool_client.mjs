// Calls tools of the host: await callTool("NAME", {...}) gives {result}, or {error} if the tool failed.
const url = process.env.TOOL_PROXY_URL ?? "http://tools.cofferdam.internal";

export async function callTool(tool, args = {}) {
  const answer = await fetch(url + "/call_tool", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ tool, args }),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error("Tool call denied: " + said.error);
  return said;
}
