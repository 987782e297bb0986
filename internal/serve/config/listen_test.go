package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listen: { address: '127.0.0.1:7433' }":                                       "",
		"listen: { address: '127.9.9.9:0' }":                                          "",
		"listen: { address: '[::1]:7433' }":                                           "",
		"listen: { address: 'localhost:7433' }":                                       "",
		"listen: { address: '[::ffff:127.0.0.1]:7433' }":                              "",
		"listen: { address: ':7433', tls: auto }":                                     "",
		"listen: { address: '192.0.2.1:443', tls: { cert_file: /c, key_file: /k } }":  "",
		"listen: { address: '0.0.0.0:443', tls: auto, domain: sandbox.example }":      "",
		"listen: { address: ':443', tls: auto, names: [ 192.0.2.1, '2001:db8::1' ] }": "",

		"listen: { address: ':7433' }":                                             "other machines may reach",
		"listen: { address: '0.0.0.0:7433' }":                                      "other machines may reach",
		"listen: { address: '[::]:7433' }":                                         "other machines may reach",
		"listen: { address: '192.0.2.1:7433' }":                                    "other machines may reach",
		"listen: { address: '[::ffff:192.0.2.1]:7433' }":                           "other machines may reach",
		"listen: { address: 'api.example:7433', tls: auto }":                       "not a name",
		"listen: { address: '127.0.0.1' }":                                         "host:port",
		"listen: { address: '127.0.0.1:http' }":                                    "port must be a number",
		"listen: { address: '127.0.0.1:70000' }":                                   "port must be a number",
		"listen: { address: '127.0.0.1:+80' }":                                     "port must be a number",
		"listen: { address: '127.0.0.1:80', domain: 'Sandbox.example' }":           "no host name",
		"listen: { address: '127.0.0.1:80', domain: '*.sandbox.example' }":         "write sandbox.example, which stands for all names below it",
		"listen: { address: '127.0.0.1:80', domain: 'sandbox' }":                   "no host name",
		"listen: { address: '127.0.0.1:80', names: [ 'a_b.example' ] }":            "no host name",
		"listen: { address: '127.0.0.1:80', names: [ 'fe80::1%eth0' ] }":           "no host name",
		"listen: { address: '127.0.0.1:80', names: [ '127.1' ] }":                  "no host name",
		"listen: { address: '127.0.0.1:80', domain: '192.0.2.1' }":                 "no host name",
		"listen: { address: '127.0.0.1:80', domain: 'box.0x7f' }":                  "no host name",
		"listen: { address: '127.0.0.1:80', domain: 'box.0x' }":                    "no host name",
		"listen: { address: '127.0.0.1:80', burst: -1 }":                           "listen.burst is -1; it must be a number above 0",
		"listen: { tls: auto }":                                                    "address is missing",
		"listen: { address: ':80', tls: always }":                                  "tls is auto",
		"listen: { address: ':80', tls: { cert_file: /c } }":                       "both cert_file and key_file",
		"listen: { address: ':80', tls: { cert_file: c, key_file: /k } }":          "absolute path",
		"listen: { address: ':80', tls: { cert_file: /c, key_file: /k, ca: /x } }": "no key \"ca\"",
		"listen: { addresses: ':80' }":                                             "addresses",
	} {
		_, err := load(t, text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestListenDefaults(t *testing.T) {
	t.Parallel()
	c, err := load(t, "listen: { address: '127.0.0.1:7433', requests_per_second: 0.4 }")
	want := Listen{Address: "127.0.0.1:7433", MaxConnections: 2_000, RequestsPerSecond: 0.4, Burst: 1}
	if diff := cmp.Diff(want, c.Listen); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if none, err := load(t, ""); err != nil || none.Listen.Wanted() || none.Telemetry.Traces.Wanted() {
		t.Errorf("without a configuration: %+v, %v", none.Listen, err)
	}
}

func TestListenURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen      Listen
		url, domain string
	}{
		{Listen{Address: "127.0.0.1:7433"}, "http://127.0.0.1:7433", ""},
		{Listen{Address: ":7433", TLS: TLS{Auto: true}, Domain: "sandbox.example"}, "https://127.0.0.1:7433", "sandbox.example:7433"},
		{Listen{Address: "[::]:443", TLS: TLS{Auto: true}, Domain: "sandbox.example"}, "https://127.0.0.1:443", "sandbox.example"},
		{Listen{Address: "[::1]:80", Domain: "localhost"}, "http://[::1]:80", "localhost"},
		{Listen{}, "", ""},
	} {
		if url, domain := c.listen.URL(), c.listen.PublicDomain(); url != c.url || domain != c.domain {
			t.Errorf("%+v: %s, %s", c.listen, url, domain)
		}
	}
}

func TestTelemetrySettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"telemetry: { traces: { endpoint: 'http://127.0.0.1:4318', sample: 0.1, headers: { Authorization: x } } }": "",
		"telemetry: { traces: { file: /t } }":                               "",
		"log: { level: debug, format: json }":                               "",
		"telemetry: { traces: { endpoint: 'ftp://a.example' } }":            "telemetry.traces.endpoint",
		"telemetry: { traces: { endpoint: 'http://a.example', file: /t } }": "both an endpoint and a file",
		"telemetry: { traces: { file: t } }":                                "telemetry.traces.file",
		"telemetry: { traces: { file: /t, sample: 1.5 } }":                  "telemetry.traces.sample",
		"telemetry: { traces: { file: /t, sample: .nan } }":                 "telemetry.traces.sample",
		"telemetry: { traces: { sample: 0.5 } }":                            "neither an endpoint nor a file",
		"log: { level: loud }":                                              "log.level",
		"log: { format: xml }":                                              "log.format",
	} {
		_, err := load(t, text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestTraceURL(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:4318":           "http://127.0.0.1:4318/v1/traces",
		"http://127.0.0.1:4318/":          "http://127.0.0.1:4318/v1/traces",
		"https://otlp.example/own/traces": "https://otlp.example/own/traces",
		"":                                "",
	} {
		if got := (Traces{Endpoint: endpoint}).URL(); got != want {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}
