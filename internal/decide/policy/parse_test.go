package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestMalformed: each document is refused with exactly these lines, in which
// "p" is the source.
func TestMalformed(t *testing.T) {
	tests := []struct{ document, want string }{
		{"", "p:1:1: the document is empty; an empty policy would allow nothing, so say what you mean, e.g. allowed_packages: {}"},
		{"# nothing\n", "p:1:1: the document is empty; an empty policy would allow nothing, so say what you mean, e.g. allowed_packages: {}"},
		{"---\n", "p:1:1: the document is empty; an empty policy would allow nothing, so say what you mean, e.g. allowed_packages: {}"},
		{"\ufeffname: x\n", "p:1:1: a byte order mark; save the file as UTF-8 without one"},
		{"name: x\ndefaults:\n\taction: deny\n", "p:3:1: a tab character; indent with spaces"},
		{"name: \"a\xff\"\n", "p:1:9: not UTF-8 text; save the file as UTF-8"},
		{"name: a\u202eb\n", "p:1:8: an invisible character that changes how text is shown, U+202E"},
		{"name: a\x00\n", "p:1:8: a control character, U+0000"},
		{strings.Repeat("# ten megabytes\n", 10<<20/16), "p:1:1: the document has 10485760 bytes, and at most 1048576 are read"},
		{"name: a: b\n", "p:1:8: not YAML: mapping values are not allowed in this context"},
		{"name: [\n", "p:2:1: not YAML: did not find expected node content"},
		{"name: x\n---\nname: y\n", "p:2:1: a second YAML document begins here; a policy is one document"},
		{"- x\n", "p:1:1: a policy must be a mapping of keys, and is a list"},
		{"text\n", "p:1:1: a policy must be a mapping of keys, and is text"},
		{"name: x\nallowed_package: {}\n", "p:2:1: unknown key allowed_package; did you mean allowed_packages?"},
		{"name: x\nname: y\n", "p:2:1: the key name is already on line 1"},
		{"1: x\n", "p:1:1: a key must be text, and this is a number"},
		{"name: 3\n", "p:1:7: name must be text, and is a number; quote it: \"3\""},
		{"version: 1.10\n", "p:1:10: version must be text, and is a number; quote it: \"1.10\""},
		{"version: 2026-01-01\n", "p:1:10: version must be text, and is a date; quote it: \"2026-01-01\""},
		{"name:\n", "p:1:6: name must be text, and is empty"},
		{"name: \"\"\n", "p:1:7: name is an empty text; write a value or leave the key out"},
		{"name: &a x\n", "p:1:7: an anchor (&a); write values out where they are used"},
		{"allowed_packages: &a { python: [] }\nblocked_packages: *a\n", "p:1:19: an anchor (&a); write values out where they are used\n" +
			"p:2:19: an alias (*a); write the value out"},
		{"defaults: { <<: { action: deny } }\n", "p:1:13: a merge key (<<); write the keys out"},
		{"name: !!str 3\n", "p:1:7: a tag (!!str); quote text instead"},
		{"isolation: Strong\n", "p:1:12: isolation must be an engine's name in lower case, and is \"Strong\""},
		{"defaults: { action: permit }\n", "p:1:21: defaults.action must be allow, audit, deny or block, and is \"permit\""},
		{"defaults: { max_cpu: .inf }\n", "p:1:22: defaults.max_cpu must be a plain decimal number, and is \".inf\""},
		{"defaults: { max_cpu: 0 }\n", "p:1:22: defaults.max_cpu must be from 0.01 to 1024, and is 0"},
		{"defaults: { max_pids: 1.5 }\n", "p:1:23: defaults.max_pids must be a whole number, and is 1.5"},
		{"defaults: { timeout_seconds: \"90\" }\n", "p:1:30: defaults.timeout_seconds must be a number, and is text"},
		{"packages: { default: yes }\n", "p:1:22: packages.default must be deny, hold or allow, and is \"yes\""},
		{"packages: { min_release_age: 7 }\n", "p:1:30: packages.min_release_age must be text, and is a number; quote it: \"7\""},
		{"packages: { min_release_age: 7x }\n", "p:1:30: packages.min_release_age must be a duration like \"7d\", \"36h\" or \"1d12h\" of ten years at most, and is \"7x\""},
		{"packages: { on_hold: wait }\n", "p:1:22: packages.on_hold must be fail, freeze or like \"wait 20s\", and is \"wait\""},
		{"packages: { on_hold: wait 0s }\n", "p:1:22: packages.on_hold needs a duration after wait, like \"wait 20s\", and has \"0s\""},
		{"packages: { on_hold: wait 20 }\n", "p:1:22: packages.on_hold needs a duration after wait, like \"wait 20s\", and has \"20\""},
		{"packages: { lockfile: { files: [] } }\n", "p:1:32: packages.lockfile.files is empty; name a lockfile, or leave files out and give them with --lockfile"},
		{"packages: { lockfile: { files: [go.sum, go.sum] } }\n", "p:1:41: packages.lockfile.files[1]: go.sum is named twice"},
		{"packages: { require_hashes: strong }\n", "p:1:29: packages.require_hashes must be true or false, and is text"},
		{"packages: { toolchains: yes }\n", "p:1:25: packages.toolchains must be deny, hold or allow, and is \"yes\""},
		{"namespaces: [ { ecosystem: node, pattern: \"@acme/*\" } ]\n", "p:1:15: namespaces[0] needs ecosystem, pattern and upstream; upstream is missing"},
		{"namespaces: [ { ecosystem: node, pattern: \"*\", upstream: \"https://npm.example/\" } ]\n", "p:1:43: namespaces[0].pattern: \"*\" begins no node package's name; write a name, or like \"acme-*\""},
		{"namespaces: [ { ecosystem: node, pattern: \"@a/*\", upstream: \"https://me:x@npm.example/\" } ]\n", "p:1:61: namespaces[0].upstream must be an index's URL like https://index.example/simple/, without credentials"},
		{"namespaces:\n  - { ecosystem: python, pattern: \"Acme_*\", upstream: \"https://a.example/\" }\n  - { ecosystem: python, pattern: \"acme-*\", upstream: \"https://b.example/\" }\n", "p:3:5: namespaces[1]: acme-* is given to two upstreams, https://a.example/ and https://b.example/"},
		{"packages: { lockfile: { files: [poetry.lock] } }\n", "p:1:33: packages.lockfile.files[0]: \"poetry.lock\" is not a known lockfile; known lockfiles: " + pkgref.KnownLockfiles()},
		{"packages: { lockfile: { files: [uv.lock], mode: loose } }\n", "p:1:49: packages.lockfile.mode must be frozen or prefer, and is \"loose\""},
		{"allowed_packages: { pyhton: [] }\n", "p:1:21: unknown key allowed_packages.pyhton; did you mean python?"},
		{"allowed_packages:\n  python:\n", "p:2:10: allowed_packages.python must be a list, and is empty"},
		{"allowed_packages: { python: [ numpy ] }\n", "p:1:31: allowed_packages.python[0] must be a mapping of keys, and is text"},
		{"allowed_packages: { python: [ { max_version: \"2.x\" } ] }\n", "p:1:31: allowed_packages.python[0] needs a name"},
		{"allowed_packages: { python: [ { name: \"num py\" } ] }\n", "p:1:39: allowed_packages.python[0].name: \"num py\" is not a python package name"},
		{"allowed_packages: { python: [ { name: numpy, max_version: 2 } ] }\n", "p:1:59: allowed_packages.python[0].max_version must be text, and is a number; quote it: \"2\""},
		{"allowed_packages: { python: [ { name: numpy, max_version: two } ] }\n", "p:1:59: allowed_packages.python[0].max_version: \"two\" is no cap for python; write like \"2.x\" or a whole version"},
		{"allowed_packages: { python: [ { name: numpy, version: \"2.x\" } ] }\n", "p:1:55: allowed_packages.python[0].version: \"2.x\" is no version specifier for python; write like \">=2.31,<3\""},
		{"allowed_packages: { node: [ { name: x, version: \">=1,<2\" } ] }\n", "p:1:49: allowed_packages.node[0].version: \">=1,<2\" is no version specifier for node; write like \"^1.2.3\""},
		{"allowed_packages: { python: [ { name: numpy, prereleases: yes } ] }\n", "p:1:59: allowed_packages.python[0].prereleases must be true or false, and is text"},
		{"allowed_packages:\n  python:\n    - name: Foo_Bar\n    - name: foo.bar\n", "p:4:7: allowed_packages.python[1]: foo-bar is already on line 3 with the same versions"},
		{"network_allowlist: [ \"https://a.example\" ]\n", "p:1:22: network_allowlist[0]: \"https://a.example\" is a URL or a range; write a name, like api.example.com or *.example.com:8443"},
		{"network_allowlist: [ 10.0.0.1 ]\n", "p:1:22: network_allowlist[0]: \"10.0.0.1\" is an address; addresses have no route in a sandbox, so write a name"},
		{"network_allowlist: [ \"*\" ]\n", "p:1:22: network_allowlist[0]: \"*\" has a * that is not its first label alone"},
		{"network_allowlist: [ \"a.example:0\" ]\n", "p:1:22: network_allowlist[0]: \"a.example:0\" has no port from 1 to 65535 after its colon"},
		{"network_allowlist: [ \"*.com\" ]\n", "p:1:22: network_allowlist[0]: \"*.com\" is a wildcard over a whole top-level domain"},
		{"network_allowlist: []\nnetwork:\n  egress_allowlist: []\n", "p:3:3: network.egress_allowlist says the same as network_allowlist on line 1; keep one of them"},
		{"resources: { cpu_limit: \"2\", memory_limit: 4Gi }\ndefaults: { max_cpu: 1, max_memory_mb: 10 }\n", "p:1:14: resources.cpu_limit says the same as defaults.max_cpu on line 2; keep one of them\n" +
			"p:1:30: resources.memory_limit says the same as defaults.max_memory_mb on line 2; keep one of them"},
		{"resources: { memory_limit: 4GB }\n", "p:1:28: resources.memory_limit must be a quantity like \"2\", \"500m\" or \"4Gi\", and is \"4GB\""},
		{"filesystem: { workspace: tmp }\n", "p:1:26: filesystem.workspace must be an absolute path without .., // or a colon, and is \"tmp\""},
		{"filesystem: { host_mounts: [ { source: /proc/1, destination: /x } ] }\n", "p:1:40: filesystem.host_mounts[0].source: /proc/1 of the host is never mounted"},
		{"credentials: { inject: [ { host: a.example, header: X } ] }\n", "p:1:26: credentials.inject[0] needs host and secret; secret is missing"},
		{"credentials: { inject: [ { host: \"*.a.example\", secret: x } ] }\n", "p:1:34: credentials.inject[0].host: \"*.a.example\" is a wildcard; a secret goes to hosts that are named"},
		{"credentials: { inject: [ { host: a.example, secret: x, env: 1A } ] }\n", "p:1:61: credentials.inject[0].env: \"1A\" is no variable's name: letters, digits and _, and no digit first"},
		{"credentials: { inject: [ { host: a.example, secret: x, env: [A, A-B] } ] }\n", "p:1:65: credentials.inject[0].env[1]: \"A-B\" is no variable's name: letters, digits and _, and no digit first"},
		{"credentials: { inject: [ { host: a.example, secret: x, env: [] } ] }\n", "p:1:61: credentials.inject[0].env must have 1 to 10 variables"},
		{"credentials: { inject: [ { host: a.example, secret: x, env: [A, C] }, { host: b.example, secret: y, env: [B, C] } ] }\n", "p:1:71: credentials.inject[1]: the variable C is another secret's on line 1"},
		{"credentials: { inject: [ { host: a.example, secret: /etc/shadow } ] }\n", "p:1:53: credentials.inject[0].secret: \"/etc/shadow\" may have letters, digits, - and _ only"},
		{"credentials: { inject: [ { host: a.example, secret: x, value: s } ] }\n", "p:1:56: unknown key credentials.inject[0].value; known here: host, secret, header, git, env, own_credentials"},
		{"network_allowlist: [ { host: a.example, port: 25, tcp: true } ]\ncredentials: { inject: [ { host: a.example, secret: x } ] }\n", "p:2:26: credentials.inject[0]: network_allowlist has a.example with tcp: true on port 25, and nothing can be put into what nobody reads"},
		{"credentials: { inject: [ { host: a.example, secret: x }, { host: a.example:443, secret: x } ] }\n", "p:1:58: credentials.inject[1]: a.example gets the secret x on line 1"},
		{"credentials: { inject: [ { host: a.example, secret: x, env: A }, { host: b.example, secret: y, env: A } ] }\n", "p:1:66: credentials.inject[1]: the variable A is another secret's on line 1"},
		{"environment: { mode: persistent }\n", "p:1:22: environment.mode persistent needs environment.baseline, the snapshot to compare with"},
		{"rules: [ { name: a } ]\n", "p:1:10: rules[0] needs condition\np:1:10: rules[0] needs action"},
		{rule("{ field: command, operator: like, value: x }"), "p:1:60: rules[0].condition.operator must be eq, ne, gt, lt, gte, lte, in, not_in, matches or contains, and is \"like\""},
		{rule("{ field: command, operator: matches, value: \"a(\" }"), "p:1:76: rules[0].condition.value is not a regular expression as Python reads it: at character 2: a ( without its )"},
		{rule("{ field: command, operator: matches, value: \"a(?=b)\" }"), "p:1:76: rules[0].condition.value is not a regular expression as Python reads it: at character 4: look-around, which is not read"},
		{rule("{ field: command, operator: matches, value: '[[:alpha:]]' }"), "p:1:76: rules[0].condition.value is not a regular expression as Python reads it: at character 3: a class like [:alpha:], which Python reads as something else"},
		{rule("{ field: command, operator: matches, value: 'x\\z' }"), "p:1:76: rules[0].condition.value is not a regular expression as Python reads it: at character 3: \\z, which Python has not"},
		{rule("{ field: command, operator: eq, value: yes }"), "p:1:71: rules[0].condition.value must be text, and is true or false in YAML 1.1; quote it: \"yes\""},
		{rule("{ field: command, operator: ne, value: On }"), "p:1:71: rules[0].condition.value must be text, and is true or false in YAML 1.1; quote it: \"On\""},
		{rule("{ field: command, operator: eq, value: 1:30 }"), "p:1:71: rules[0].condition.value must be text, and is a number in YAML 1.1; quote it: \"1:30\""},
		{rule("{ field: command, operator: in, value: [ls, 1_0.5, 2026-1-2 3:04:05, off, '=', =] }"), "p:1:76: rules[0].condition.value[1] must be text, and is a number; quote it: \"1_0.5\"\n" +
			"p:1:83: rules[0].condition.value[2] must be text, and is a date; quote it: \"2026-1-2 3:04:05\"\n" +
			"p:1:101: rules[0].condition.value[3] must be text, and is true or false in YAML 1.1; quote it: \"off\"\n" +
			"p:1:111: rules[0].condition.value[5] must be text, and is nothing that is read in YAML 1.1; quote it: \"=\""},
		{"rules: [ { name: a, condition: { field: command, operator: eq, value: x }, action: deny, priority: 010 } ]\n", "p:1:100: rules[0].priority begins with a zero, and \"010\" is octal in YAML 1.1; write it without"},
		{rule("{ field: command, operator: eq, value: 5 }"), "p:1:71: rules[0].condition.value must be text, and is a number; quote it: \"5\""},
		{rule("{ field: command, operator: in, value: abc }"), "p:1:71: rules[0].condition.value must be a list, and is text"},
		{rule("{ field: agent_id, operator: eq, value: x }"), "p:1:41: rules[0].condition.field: \"agent_id\" is never known here, so this rule could never refuse anything; the fields are command, code, findings, tool (or tool_name), arguments, arguments.NAME and action"},
		{"rules: [ { name: a, condition: { field: command, operator: eq, value: x }, action: approve } ]\n", "p:1:84: rules[0].action: approve is for calls of tools, and the field command is of none; the fields of a call are tool (or tool_name), arguments and arguments.NAME"},
		{"rules: [ { name: a, condition: { field: action, operator: eq, value: x }, action: approve } ]\n", "p:1:83: rules[0].action: approve is for calls of tools, and the field action is of none; the fields of a call are tool (or tool_name), arguments and arguments.NAME"},
		{"defaults: { action: approve }\n", "p:1:21: defaults.action must be allow, audit, deny or block, and is \"approve\""},
		{rule("{ field: arguments., operator: eq, value: x }"), "p:1:41: rules[0].condition.field: \"arguments.\" is never known here, so this rule could never refuse anything; the fields are command, code, findings, tool (or tool_name), arguments, arguments.NAME and action"},
		{rule("{ field: arguments.n, operator: gt, value: 1e3 }"), "p:1:75: rules[0].condition.value must be a plain decimal number of at most 64 characters, and is \"1e3\""},
		{rule("{ field: arguments.n, operator: gt, value: 010 }"), "p:1:75: rules[0].condition.value must be a plain decimal number of at most 64 characters, and is \"010\""},
		{rule("{ field: arguments.n, operator: in, value: [0x10, null, [1], yes, True] }"), "p:1:76: rules[0].condition.value[0] must be a plain decimal number of at most 64 characters, and is \"0x10\"\n" +
			"p:1:82: rules[0].condition.value[1] must be text, and is empty\n" +
			"p:1:88: rules[0].condition.value[2] must be text, and is a list\n" +
			"p:1:93: rules[0].condition.value[3] must be text, and is true or false in YAML 1.1; quote it: \"yes\"\n" +
			"p:1:98: rules[0].condition.value[4] must be written true or false, and is \"True\""},
		{rule("{ field: arguments.n, operator: matches, value: 5 }"), "p:1:80: rules[0].condition.value must be text, and is a number; quote it: \"5\""},
		{rule("{ field: arguments, operator: eq, value: 5 }"), "p:1:73: rules[0].condition.value must be text, and is a number; quote it: \"5\""},
		{"tool_allowlist: [a, \"*\", 5, 'a b']\n", "p:1:21: tool_allowlist[1] must be the name of one tool, which is a letter, then letters, digits, _, . and -, at most 64 in all, and is \"*\"\n" +
			"p:1:26: tool_allowlist[2] must be text, and is a number; quote it: \"5\"\n" +
			"p:1:29: tool_allowlist[3] must be the name of one tool, which is a letter, then letters, digits, _, . and -, at most 64 in all, and is \"a b\""},
		{"metadata: a text\n", "p:1:11: metadata has to have keys, and is for people only"},
		{"scope: \"**\"\n", "p:1:8: scope is not supported: a policy applies to the whole run; leave it out"},
		{"name: 1\nversion: 2\nisolation: 3\n", "p:1:7: name must be text, and is a number; quote it: \"1\"\np:2:10: version must be text, and is a number; quote it: \"2\"\n" +
			"p:3:12: isolation must be text, and is a number; quote it: \"3\""},
	}
	for _, tt := range tests {
		p, err := policy.Parse("p", []byte(tt.document))
		if err == nil {
			t.Errorf("%.200q is accepted: %v", tt.document, p.Check())
			continue
		}
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%.200q: %v is no ErrInvalid", tt.document, err)
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%.200q (-want +got):\n%s", tt.document, diff)
		}
	}
}

func rule(condition string) string {
	return "rules: [ { name: a, condition: " + condition + ", action: deny } ]\n"
}

func TestProblemsAreCapped(t *testing.T) {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := policy.Parse("p", []byte(b.String()))
	if err == nil {
		t.Fatal("fifty unknown keys are accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[20] != "and 30 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestToolkitDocument: what the toolkit writes when it prints a document back.
func TestToolkitDocument(t *testing.T) {
	p := mustParse(t, `version: "1.0"
name: unnamed
description: ""
rules:
  - { name: a, condition: { field: tool_count, operator: gt, value: 3 }, action: allow, priority: 0, message: "", dynamic_condition: null, override: false }
defaults: { action: deny, max_tokens: 4096, max_tool_calls: 10, confidence_threshold: 0.8, max_cpu: null, max_memory_mb: null, timeout_seconds: null, network_default: deny }
inherit: true
scope: null
metadata: { jurisdiction: XX, list: [1, { two: 3 }] }
disclaimer: no certified instrument
network_allowlist: []
tool_allowlist: []
sandbox_mounts: { input_dir: /srv/in, output_dir: null }
`)
	if diff := cmp.Diff([]policy.Mount{{Source: "/srv/in", Destination: "/input"}}, p.Mounts()); diff != "" {
		t.Error(diff)
	}
	command := "true"
	if d := p.DecideCommand(policy.CommandInput{Command: &command}); d.Effect != policy.Deny || d.Rule != "defaults.action" {
		t.Errorf("%+v", d)
	}
}

func TestValues(t *testing.T) {
	p := mustParse(t, `
defaults: { max_disk_mb: 5, max_pids: 7 }
resources: { cpu_limit: 500m, memory_limit: 1.5Gi, timeout_seconds: 0.5 }
packages: { min_release_age: 1w1d1h }
network_allowlist: [ "API.example.com", "*.example.org:8443" ]
filesystem:
  workspace: /job/
  mode: read_only
  host_mounts: [ { source: /srv/data, destination: /data, mode: read_write } ]
`)
	want := policy.Resources{CPU: 0.5, MemoryBytes: 3 << 29, DiskBytes: 5 << 20, Pids: 7, Timeout: 500 * time.Millisecond}
	if diff := cmp.Diff(want, p.Resources()); diff != "" {
		t.Error(diff)
	}
	if got := p.MinReleaseAge(); got != (8*24+1)*time.Hour {
		t.Errorf("min_release_age is %s", got)
	}
	if got := fmt.Sprint(p.NetworkAllowlist()); got != "[api.example.com *.example.org:8443]" {
		t.Errorf("network_allowlist is %s", got)
	}
	if got := p.Workspace(); got != (policy.Workspace{Path: "/job", ReadOnly: true}) {
		t.Errorf("workspace is %+v", got)
	}
	if diff := cmp.Diff([]policy.Mount{{Source: "/srv/data", Destination: "/data", ReadWrite: true}}, p.Mounts()); diff != "" {
		t.Error(diff)
	}
}
