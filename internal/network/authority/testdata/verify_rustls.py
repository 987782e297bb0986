# For each line "CA PORT HOST" of standard input: a request to the port of
# 127.0.0.1, as to the host, by a client that judges certificates with rustls.
import sys

import pyqwest

for line in sys.stdin:
    ca, port, host = line.split()
    with open(ca, "rb") as f:
        transport = pyqwest.SyncHTTPTransport(tls_ca_cert=f.read(), dns_overrides={host: ["127.0.0.1"]})
    try:
        pyqwest.SyncClient(transport).get(f"https://{host}:{port}/")
        print("taken")
    except Exception as e:
        print("refused:", repr(e).replace("\n", " "))
