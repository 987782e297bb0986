# Asks api.example with one of Python's clients, as a program would that knows of no
# gateway: no certificate is named here, and the keys come from the environment.
import asyncio, os, sys

HOST = "https://api.example"
KEY = os.environ["OPENAI_API_KEY"]
BEARER = {"Authorization": "Bearer " + KEY}


def plain(name):
    return f"{HOST}/{name}/plain"


def with_urllib():
    import urllib.request

    print(urllib.request.urlopen(urllib.request.Request(plain("urllib"), headers=BEARER)).read().decode())


def with_requests():
    import requests

    with requests.Session() as s:
        for _ in range(2):
            print(s.get(plain("requests"), headers=BEARER).text)
        print(s.post(f"{HOST}/requests/upload", data=(b"x" * 1000 for _ in range(100)), headers=BEARER).text)


def with_httpx():
    import httpx

    for http2 in False, True:
        with httpx.Client(http2=http2) as c:
            print(c.get(plain("httpx"), headers=BEARER).text)


def with_aiohttp():
    import aiohttp

    async def ask():
        async with aiohttp.ClientSession() as s, s.get(plain("aiohttp"), headers=BEARER) as a:
            print(await a.text())

    asyncio.run(ask())


def with_openai():
    import openai

    c = openai.OpenAI(base_url=f"{HOST}/openai/v1")
    said = ""
    for i, chunk in enumerate(c.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)):
        said += chunk.choices[0].delta.content or ""
        if i == 0:
            c.get("../go-on", cast_to=object)
    print(said)


def with_anthropic():
    import anthropic

    c = anthropic.Anthropic(base_url=f"{HOST}/anthropic")
    said = ""
    with c.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
        for text in stream.text_stream:
            if not said:
                c.get("/go-on", cast_to=object)
            said += text
    print(said)


def with_grpc():
    import grpc

    meta = (("authorization", "Bearer " + KEY),)
    with grpc.secure_channel("api.example:443", grpc.ssl_channel_credentials()) as channel:
        answer, call = channel.unary_unary("/grpc/Unary").with_call(b"one", metadata=meta)
        print(answer.decode(), dict(call.trailing_metadata())["x-sum"])
        print([m.decode() for m in channel.unary_stream("/grpc/Many")(b"m", metadata=meta)])
        print(channel.stream_unary("/grpc/Sum")(iter([b"a", b"b", b"c"]), metadata=meta).decode())
        heard = []

        def in_turn():  # says the second when the first was answered
            yield b"0"
            for i in range(1, 3):
                while len(heard) < i:
                    pass
                yield str(i).encode()

        for m in channel.stream_stream("/grpc/Both")(in_turn(), metadata=meta):
            heard.append(m.decode())
        print(heard)
        try:
            channel.unary_unary("/grpc/Fails")(b"x", metadata=meta)
        except grpc.RpcError as e:
            print(e.code().name, e.details())
    token = grpc.composite_channel_credentials(grpc.ssl_channel_credentials(), grpc.access_token_call_credentials(KEY))
    with grpc.secure_channel("api.example:443", token) as channel:
        print(channel.unary_unary("/grpc/Unary")(b"two").decode())


def with_websockets():
    import websockets.sync.client

    with websockets.sync.client.connect("wss://api.example/websockets/socket", additional_headers=BEARER) as ws:
        for text in "first", "x" * 70_000:
            ws.send(text)
            print(len(text), ws.recv() == text)
        print(ws.ping().wait(60))


globals()["with_" + sys.argv[1]]()
