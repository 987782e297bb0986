package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWrongConfigurationsAreToldPlainly: one sentence with the key, where it is to the line and the column, once, and
// without the names of types.
func TestWrongConfigurationsAreToldPlainly(t *testing.T) {
	t.Parallel()
	const up = "upstreams: [ { ecosystem: go, index: 'https://registry.example/', "
	for text, want := range map[string]string{
		// what can't be decoded
		"a: 1\n":                                     `line 1, column 1: there is no key "a"; there are default_template, idle_timeout,`,
		"listen: { listn: x }\n":                     `line 1, column 11: there is no key "listen.listn"; there are address, tls, domain,`,
		"pool: [ { size: 1 }, { siz: 1 } ]\n":        `line 1, column 24: there is no key "pool[1].siz"; there are template, policy, size, wire`,
		"listen:\n  listn: x\n":                      `line 2, column 3: there is no key "listen.listn"; there are address, tls, domain,`,
		"network:\n  hosts:\n  - nme: x\n":           `line 3, column 5: there is no key "network.hosts[0].nme"; there are name, address,`,
		"'.': 1\n'.': 2\n":                           `line 2, column 1: the key "." is on line 1 already`,
		"gateway_uid: many\n":                        "line 1, column 14: gateway_uid: `many` is no whole number",
		"upstreams: 3\n":                             "line 1, column 12: upstreams: `3` is no list",
		"listen: [ 1 ]\n":                            "line 1, column 9: listen is no mapping of keys",
		"default_template: { a: b }\n":               "line 1, column 19: default_template is no text",
		"pool: [ { size: much } ]\nb: 2\n":           "line 1, column 17: pool[0].size: `much` is no whole number; line 2, column 1: there is no key \"b\"",
		"idle_timeout: 5\n":                          `line 1, column 15: idle_timeout: "5" is not a duration`,
		"freeze:\n  max_bytes: lots\n":               `line 2, column 14: freeze.max_bytes: "lots" is not a size`,
		"approvals: { after_run: x }\n":              `line 1, column 25: approvals.after_run: "x" is not a time`,
		"listen: { tls: on }\n":                      "line 1, column 16: tls is auto, or",
		"log: { level: info, level: warn }\n":        `line 1, column 21: the key "level" is on line 1 already`,
		"tools: [ { name: a, arguments: [ 1 ] } ]\n": "line 1, column 32: a JSON Schema is a map",
		"snapshots: [\n":                             "line 2, column 1: did not find expected node content",
		// what is decoded, and can't be
		"# one\npool:\n- size: 1\n- size: 2000\n":                                                "line 4, column 9: pool[1].size is 2000; it must be",
		"freeze: { max_count: -1 }\nsnapshots: { max_count: -2 }\n":                              "line 1, column 22: freeze.max_count is -1; it must be a number above 0; line 2, column 25: snapshots.max_count is -2",
		"upstreams: [ { ecosystem: python } ]\n":                                                 "line 1, column 14: upstreams[0].index is missing",
		"upstreams: [ { ecosystem: go, index: nope } ]\n":                                        "line 1, column 38: upstreams[0].index is no http or https URL of a registry; write it as https://registry.corp.example/",
		up + "proxy: nope } ]\n":                                                                 "line 1, column 74: upstreams[0].proxy is no http or https URL of a proxy; write it as http://proxy.corp.example:3128",
		up + "proxy: 'http://u:hunter2@' } ]\n":                                                  "upstreams[0].proxy is no",
		up + "proxy: 'socks5://proxy.example:1080' } ]\n":                                        "upstreams[0].proxy is no",
		up + "proxy: 'http://proxy.example:99999' } ]\n":                                         "upstreams[0].proxy is no",
		up + "proxy: 'http://proxy.example:port' } ]\n":                                          "upstreams[0].proxy is no",
		up + "proxy: 'proxy.example:0' } ]\n":                                                    "upstreams[0].proxy is no",
		up + "log: k, log_url: sum.example } ]\n":                                                "line 1, column 84: upstreams[0].log_url is no http or https URL of a checksum database; write it as https://sums.corp.example",
		up + "address: here } ]\n":                                                               "line 1, column 76: upstreams[0].address is no IP address with a port; write it as 192.0.2.1:443",
		"tools: [ { name: t, description: d, endpoint: 'https://u:hunter2@t.example:port' } ]\n": "tools[0].endpoint: it is no URL; write it as https://tools.corp.example/t",
		"tools: [ { name: t, description: d, endpoint: 'https://u:hunter2@t.example/' } ]\n":     "tools[0].endpoint: \"https://u:xxxxx@t.example/\" has credentials in it",
		"telemetry: { traces: { endpoint: 'ftp://u:hunter2@t.example' } }\n":                     "line 1, column 34: telemetry.traces.endpoint is no http or https URL",
		"approvals: { url: 'https://u:hunter2@a.example/{request}' }\n":                          "line 1, column 19: approvals.url is no http or https address with {request} in it and without a user; write it as https://approvals.example/{request}",
		"images: { '': debian }\n":                                                               `line 1, column 9: images has the template "debian" for the image ""; give both a name`,
		"images: { a: }\n":                                                                       `images has the template "" for the image "a"; give both a name`,
		"gateway_uid: -4\n":                                                                      "line 1, column 14: gateway_uid is -4",
		"docker: { host: 'tcp://192.0.2.1:1' }\n":                                                "line 1, column 17: docker.host is",
		"audit: { publish: { url: x } }\n":                                                       "line 1, column 26: audit.publish.url is no http",
		"network: { hosts: [ { name: x.example, port: 70000 } ] }\n":                             "line 1, column 46: network.hosts[0].port is 70000",
		"listen: { address: ':1', tls: auto, domain: 'a_b.example' }\n":                          `line 1, column 45: listen.domain is "a_b.example", which is no host name: that has two parts or more`,
		"listen: { address: ':1', tls: auto, domain: '*.b.example' }\n":                          `listen.domain is "*.b.example"; write b.example, which stands for all names below it`,
		"listen: { address: ':1', tls: auto, names: [ a.b, 'c.d:2' ] }\n":                        `line 1, column 51: listen.names[1] is "c.d:2"; write it without a port`,
		"listen: { address: '127.0.0.1:1', burst: -1 }\n":                                        "line 1, column 42: listen.burst is -1; it must be a number above 0",
		// a zero would be as if nothing were there
		"overcommit: { memory: 0 }\n":               "line 1, column 23: overcommit.memory is 0, which would be as if it were not there",
		"overcommit: { owner: 0.0 }\n":              "overcommit.owner is 0,",
		"listen: { requests_per_second: 0 }\n":      "listen.requests_per_second is 0,",
		"processes: { stage: { cpu_weight: 0 } }\n": "processes.stage.cpu_weight is 0,",
		"freeze: { max_count: 0 }\n":                "freeze.max_count is 0,",
		"freeze: { max_count: 0x0 }\n":              "line 1, column 22: freeze.max_count is 0,",
		"overcommit: { memory: 0o0 }\n":             "overcommit.memory is 0,",
		"network: { hosts: [ { name: x.example, private: true, port: &z 0 } ] }\novercommit: { memory: *z }\n": "overcommit.memory is 0,",
		"processes: { stage: { <<: { tasks: 0 } } }\n":                                                         "processes.stage.tasks is 0,",
		"processes: { stage: { <<: [ { memory: 1GiB }, { tasks: 0 } ] } }\n":                                   "processes.stage.tasks is 0,",
		"log: { level: info }\n---\npool: [ { size: 1 } ]\n":                                                   "has more than one document",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
			continue
		}
		said := strings.ReplaceAll(err.Error(), path, "")
		for _, never := range []string{"hunter2", `config\.`, "!!", "unmarshal", "construct", "struct", `line \d+(, column \d+)?: line`} {
			if regexp.MustCompile(never).MatchString(said) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for _, text := range []string{"", "# nothing\n", up + "proxy: 'http://u:hunter2@proxy.example:3128', log: k, log_url: 'https://sum.example', address: '192.0.2.1:443' } ]\n", up + "proxy: 'proxy.example:3128' } ]\n", up + "proxy: '[2001:db8::1]:3128' } ]\n", "network: { hosts: [ { name: x.example, private: true, port: 0 } ] }\n", "telemetry: { traces: { file: /x, sample: 0 } }\n", "log: { level: info }\n...\n", "freeze: { max_count: }\nprocesses: { stage: { <<: { tasks: 0 }, tasks: 64 } }\n"} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPlaceOfWhatIsFoundLater: what is known of a setting only when the daemon looks at it has its place, too, and
// any other error stays as it is.
func TestPlaceOfWhatIsFoundLater(t *testing.T) {
	t.Parallel()
	s := Source{Path: "/c.yaml", places: placesOf([]byte("pool:\n- template: none\nupstreams: [ {} ]\n"))}
	for said, want := range map[string]string{
		`the configuration is wrong: pool[0].template is "none"`: `the configuration file /c.yaml is wrong: line 2, column 13: pool[0].template is "none"`,
		"upstreams[0] can't be used: no":                         "the configuration file /c.yaml, line 3, column 14: upstreams[0] can't be used: no",
		"the audit log's key is missing":                         "the audit log's key is missing",
		"audit.key is open to others":                            "audit.key is open to others",
	} {
		err := fault.Invalid("%s", said)
		if got := s.Place(err); got.Error() != want || !errors.Is(got, fault.ErrInvalid) {
			t.Errorf("%q: %v", said, got)
		}
	}
}
