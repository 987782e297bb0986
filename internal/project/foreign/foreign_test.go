package foreign_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/project"
	"github.com/cofferdam-dev/cofferdam/internal/project/foreign"
)

func convert(t *testing.T, text string) foreign.Result {
	t.Helper()
	made, err := foreign.Convert("settings.json", []byte(text), options(""))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return made
}

func options(format foreign.Format) foreign.Options {
	return foreign.Options{Format: format, Dir: "/home/me/app", Home: "/home/me", PolicyFile: "policy.yaml"}
}

// settings are those that a run would read.
func settings(t *testing.T, made foreign.Result) project.Settings {
	t.Helper()
	s, err := project.Parse("cofferdam.yaml", made.Settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func notes(made foreign.Result) []string {
	var all []string
	for _, n := range made.Notes {
		all = append(all, fmt.Sprintf("%d:%d %s: %s", n.Line, n.Column, n.What, n.Says))
	}
	return all
}

const srt = `{
  // what a build needs
  "network": {
    "allowedDomains": ["api.example.com", "*.example.org", "git.example.net:9418", "localhost"],
    "deniedDomains": ["bad.example.com"],
    "allowLocalBinding": true
  },
  "filesystem": {
    "denyRead": ["~/.ssh", ".env", "/srv/cache/keys"],
    "allowWrite": [".", "/srv/cache", "/srv/out", "/tmp", "~/.npm", "/srv/*"],
    "denyWrite": ["/srv/out/kept", "./conf"],
  },
  "ignoreViolations": { "*": ["/x"] },
  "credentials": { "envVars": [ { "name": "TOKEN", "mode": "deny" } ], "files": [ { "path": "./key.pem", "mode": "mask" } ] },
  "colour": 1
}
`

func TestSRT(t *testing.T) {
	t.Parallel()
	made := convert(t, srt)
	for _, one := range []struct {
		got  []byte
		want string
	}{
		{made.Settings, "# Made of settings.json by cofferdam project import.\n# Read it, and then: cofferdam project allow\npolicy: policy.yaml\nworkspace: copy\nmounts:\n  - /srv/out:/srv/out:rw\n  - /srv/out/kept:/srv/out/kept\n"},
		{made.Policy, "# Made of settings.json by cofferdam project import.\n# No package is listed, so none is installed: cofferdam policy init shows how to list them.\nnetwork_allowlist:\n  - api.example.com\n  - '*.example.org'\n  - git.example.net:9418\n"},
		{made.Ignore, "/.env\n/key.pem\n"},
	} {
		if diff := cmp.Diff(one.want, string(one.got)); diff != "" {
			t.Error(diff)
		}
	}
	want := []string{
		"4:5 network.allowedDomains: a host without a port is reached on 80 and 443; another port is named in the policy, as host:port",
		"4:84 localhost: left out: inside it is the sandbox itself, which needs no entry, and the host's is not reachable",
		"5:5 network.deniedDomains: what the policy does not list is refused, and needs no entry",
		"6:5 network.allowLocalBinding: left out: a sandbox has a loopback interface of its own, on which anything may listen",
		"9:28 .env: hidden by .aiignore, which has /.env",
		"10:20 .: the run writes into a copy of the project; cofferdam apply brings over what you want of it",
		"10:25 /srv/cache: left out: /srv/cache/keys in it must not be read, and can be hidden in the project only",
		"10:51 /tmp: left out: a sandbox has a /tmp of its own, and may write there",
		"10:59 ~/.npm: left out: it is in your home; a sandbox has one of its own, which home: NAME keeps over runs",
		"10:69 /srv/*: left out: a mount is no pattern; name the directory",
		"11:36 ./conf: what the run writes there stays in its copy until you bring it over",
		"13:3 ignoreViolations: left out: what is refused is recorded, and nothing has to be kept quiet",
		"14:33 TOKEN: a sandbox gets no variable of yours",
		"14:83 ./key.pem: left out: its placeholder; give the daemon the secret by name, which hosts get in the sandbox's place: docs/network.md",
		"14:93 ./key.pem: hidden by .aiignore, which has /key.pem",
		"15:3 colour: left out: srt does not read it",
	}
	if diff := cmp.Diff(want, notes(made)); diff != "" {
		t.Error(diff)
	}
}

// TestDeniedHosts: what is denied of what is allowed is not reachable, nor what can't be told from it.
func TestDeniedHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allowed, denied string
		reached, not    string // host:port, with spaces between
	}{
		{`"a.test"`, `"b.test"`, "a.test:443 a.test:80", "b.test:443 a.test:8443"},
		{`"a.test"`, `"a.test"`, "", "a.test:443 a.test:80"},
		{`"A.Test"`, `"a.tEST:80"`, "a.test:443", "a.test:80"},
		{`"a.test:443"`, `"a.test:80"`, "a.test:443", "a.test:80"},
		{`"a.test:443", "b.test"`, `"*:443"`, "b.test:80", "a.test:443 b.test:443"},
		{`"*.a.test"`, `"x.a.test"`, "", "x.a.test:443 y.a.test:443"},
		{`"*.a.test"`, `"x.a.test:8080"`, "x.a.test:443 y.a.test:80", "x.a.test:8080 a.test:443"},
		{`"x.y.a.test", "b.test"`, `"*.a.test"`, "b.test:443", "x.y.a.test:443"},
		{`"*.a.test"`, `"*.a.test:80"`, "x.a.test:443", "x.a.test:80"},
		{`"*.a.test"`, `"a.test"`, "x.a.test:443", "a.test:443"},
		{`"*.x.a.test"`, `"*.a.test"`, "", "y.x.a.test:443"},
		{`"a.test", "b.test"`, `"*"`, "", "a.test:443 b.test:80"},
		{`"a.test", "[::1]:443", "10.0.0.1", "*.com", "*"`, ``, "a.test:443", "b.com:443"},
	} {
		made := convert(t, fmt.Sprintf(`{"network": {"allowedDomains": [%s], "deniedDomains": [%s]}}`, c.allowed, c.denied))
		p, err := policy.Parse("p", append([]byte("{}\n"), ""...))
		if made.Policy != nil {
			p, err = policy.Parse("p", made.Policy)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []struct {
			hosts string
			want  bool
		}{{c.reached, true}, {c.not, false}} {
			for host := range strings.FieldsSeq(list.hosts) {
				name, port, _ := strings.Cut(host, ":")
				var n int
				if _, err := fmt.Sscan(port, &n); err != nil {
					t.Fatal(err)
				}
				if p.Host(name, n).Allowed() != list.want {
					t.Errorf("allowed %s, denied %s: %s is reached: %t\n%s", c.allowed, c.denied, host, !list.want, made.Policy)
				}
			}
		}
	}
}

// TestFiles: what must not be read is hidden or not mounted, and what must not be written is read-only.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files     string
		workspace string
		mounts    []string
		hidden    string
	}{
		{files: ``, mounts: []string{".:/workspace"}},
		{files: `"allowWrite": ["./out"]`, workspace: "copy"},
		{files: `"allowWrite": ["~/app/out"]`, workspace: "copy"},
		{files: `"allowRead": ["/data", "/usr/lib", "."]`, mounts: []string{".:/workspace", "/data:/data"}},
		{files: `"denyRead": ["**/*.pem", "./a/../secrets/", "/home/me/app/x"]`, mounts: []string{".:/workspace"}, hidden: "/**/*.pem\n/secrets\n/x\n"},
		{files: `"denyRead": ["a\\b", "key  "]`, mounts: []string{".:/workspace"}, hidden: "/a\\\\b\n/key\\ \\ \n"},
		{files: `"denyRead": ["."]`, mounts: []string{".:/workspace"}, hidden: "/*\n"},
		{files: `"denyRead": ["~/**/.env", "/home/*/app/key", "/home/you/*/key", "/home/me"]`, mounts: []string{".:/workspace"}, hidden: "/**/.env\n/key\n"},
		{files: `"allowWrite": ["/data"], "denyRead": ["/data/a*/key"]`, mounts: []string{".:/workspace"}},
		{files: `"allowWrite": ["/data"], "denyRead": ["/**/key"]`, mounts: []string{".:/workspace"}, hidden: "/**/key\n"},
		{files: `"allowWrite": ["/home"], "denyRead": ["key"]`, mounts: []string{".:/workspace"}, hidden: "/key\n"},
		{files: `"allowWrite": ["/data"], "denyWrite": ["/data"]`, mounts: []string{".:/workspace", "/data:/data"}},
		{files: `"allowWrite": ["/data"], "denyWrite": ["/"]`, mounts: []string{".:/workspace", "/data:/data"}},
		{files: `"allowWrite": ["/data"], "denyWrite": ["/data/*.lock"]`, mounts: []string{".:/workspace", "/data:/data"}},
		{files: `"allowWrite": ["/data"], "denyWrite": ["/database"]`, mounts: []string{".:/workspace", "/data:/data:rw"}},
		{files: `"allowWrite": ["/home"], "denyWrite": ["conf"]`, mounts: []string{".:/workspace", "/home:/home"}},
		{files: `"allowWrite": ["/", "/etc", "/run/docker.sock", "/data:x"]`, mounts: []string{".:/workspace"}},
	} {
		made := convert(t, `{"filesystem": {`+c.files+`}}`)
		s := settings(t, made)
		if s.Workspace != c.workspace || !cmp.Equal(s.Mounts, c.mounts) || string(made.Ignore) != c.hidden {
			t.Errorf("%s: workspace %q, mounts %q, hidden %q", c.files, s.Workspace, s.Mounts, made.Ignore)
		}
	}
}

const devContainer = `{
  "name": "app", /* for people */
  "image": "example/image:1",
  "features": { "ghcr.example/features/node:1": {} },
  "forwardPorts": [3000, "localhost:5000", "db:5432"],
  "appPort": "8080:80",
  "containerEnv": { "MODE": "test", "ROOT": "${containerWorkspaceFolder}/x", "HOST": "${localEnv:HOST}" },
  "remoteEnv": { "PATH_EXTRA": null },
  "mounts": [
    "source=${localWorkspaceFolder}/data,target=/data,type=bind,readonly",
    { "type": "bind", "source": "/srv/cache", "target": "/cache" },
    "source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind",
    "source=cache,target=/c,type=volume",
    "source=${localEnv:HOME}/.aws,target=/aws,type=bind",
    "source=/srv/x,target=/workspace/x,type=bind",
    "source=/home/me/.ssh,target=/ssh,type=bind"
  ],
  "onCreateCommand": "echo ${USER}",
  "postCreateCommand": ["npm", "ci", "it's"],
  "postStartCommand": { "a": "true", "b": ["echo", "b"] },
  "initializeCommand": "rm -rf /",
  "privileged": true,
  "unheard": 1
}
`

func TestDevContainer(t *testing.T) {
	t.Parallel()
	made := convert(t, devContainer)
	want := project.Settings{
		Workspace: "copy", Ports: []string{"3000", "5000", "8080:80"}, Environment: map[string]string{"MODE": "test", "ROOT": "/workspace/x"},
		Mounts: []string{"data:/data", "/srv/cache:/cache:rw"},
		Hooks:  project.Hooks{Start: []string{"echo ${USER}", `'npm' 'ci' 'it'\''s'`, "true", "'echo' 'b'"}},
	}
	if diff := cmp.Diff(want, settings(t, made)); diff != "" {
		t.Error(diff)
	}
	if made.Policy != nil || made.Ignore != nil {
		t.Errorf("%s %s", made.Policy, made.Ignore)
	}
	all := strings.Join(notes(made), "\n")
	for _, part := range []string{
		"1:1 the network: ", "2:3 name: left out", "3:3 image: left out: a sandbox starts from a template", "4:17 ghcr.example/features/node:1: left out",
		"5:44 forwardPorts db:5432: left out", "7:78 containerEnv.HOST", "mounts /srv/cache: the run can write to /srv/cache", "mounts /var/run/docker.sock: left out: a sandbox has a system of its own",
		"mounts cache: left out: there are no volumes", "${localEnv:HOME} is known", "mounts /srv/x: left out: /workspace has the copy", "mounts /home/me/.ssh: left out: it is in your home",
		"initializeCommand: left out: it would run on your machine", "privileged: left out: a sandbox is never made weaker", "unheard: left out: it is not known here", "8:18 remoteEnv.PATH_EXTRA: left out",
	} {
		if !strings.Contains(all, part) {
			t.Errorf("no note %q in\n%s", part, all)
		}
	}
}

// TestHostile: what is no such text is an error with line and column, and nothing else.
func TestHostile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "settings.json:1:1: a value is missing at the end",
		"[]":                                     "settings.json:1:1: the settings have to be an object, and are a list",
		"{\n  \"a\": 1,\n  \"é\": x }":           "settings.json:3:8: \"x\" is no value",
		"{\"a\": 1} x":                           "settings.json:1:10: there is something behind the end",
		"{\"a\": 1\n\"b\": 2}":                   "settings.json:2:1: there has to be a comma or } here",
		"{\"a\" 1}":                              "settings.json:1:6: there has to be a colon",
		"{a: 1}":                                 "settings.json:1:2: there has to be a key in double quotes",
		"{\"a\": 1, \"a\": 2}":                   "settings.json:1:10: the key \"a\" is on line 1 already",
		"{\"a\": \"x":                            "settings.json:1:7: this text has no end",
		"{\"a\": \"x\ny\"}":                      "settings.json:1:9: a text can't have this character",
		"{\"a\": \"\\q\"}":                       "settings.json:1:7: this text has a wrong escape",
		"{\"a\": \"\xff\"}":                      "settings.json:1:7: this text has a wrong escape",
		"{ /* x":                                 "settings.json:1:3: the comment has no end",
		"{\"a\": 01}":                            "settings.json:1:7: \"01\" is no value",
		"{\"a\": \x00}":                          "settings.json:1:7: there has to be a value here",
		strings.Repeat("[", 100):                 "settings.json:1:66: it is nested deeper than 64",
		`{"x": "` + strings.Repeat("a", 1<<20):   "at most 1048576 are read",
		`{"x": 1}`:                               "say which with --from",
		`{"network": {"allowedDomains": "x"}}`:   "settings.json:1:32: network.allowedDomains has to be a list, and is a text",
		`{"network": {"allowedDomains": [1]}}`:   "settings.json:1:33: an element of network.allowedDomains has to be a text, and is a number",
		`{"filesystem": []}`:                     "settings.json:1:16: filesystem has to be an object, and is a list",
		`{"filesystem": {"denyRead": ["a\nb"]}}`: "settings.json:1:30: \"a\\nb\" can't be hidden",
		`{"network": {}, "credentials": {"files": [{"path": 1}]}}`:       "a secret needs a path and a mode",
		`{"image": "x", "forwardPorts": [70000]}`:                        "settings.json:1:33: forwardPorts: \"70000\" is no port",
		`{"image": "x", "containerEnv": {"": "x"}}`:                      "containerEnv: \"\" is no variable",
		`{"image": "x", "mounts": ["type=bind,source=/a,target=b"]}`:     "a bind mount needs a source, and a target that is an absolute path",
		`{"image": "x", "mounts": ["type=bind,source=/a,target=/b:rw"]}`: "both without colons",
		`{"image": "x", "postCreateCommand": 1}`:                         "postCreateCommand has to be a text or a list or an object, and is a number",
		`{"image": "x", "postCreateCommand": {"a": {"b": "c"}}}`:         "a command of postCreateCommand has to be a text or a list, and is an object",
	} {
		made, err := foreign.Convert("settings.json", []byte(text), options(""))
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v; want %s", text, err, want)
		}
		if made.Settings != nil {
			t.Errorf("%.60q: %s", text, made.Settings)
		}
	}
}

// TestForms: comments, commas behind the last, a mark at the beginning and escapes are read.
func TestForms(t *testing.T) {
	t.Parallel()
	made := convert(t, "\ufeff// a\n{ /* b\n */ \"network\": { \"allowedDomains\": [ \"a\\u002etest\", ], }, } // c")
	if !strings.Contains(string(made.Policy), "- a.test\n") {
		t.Errorf("%s", made.Policy)
	}
	for format, text := range map[foreign.Format]string{foreign.SRT: "{}", foreign.DevContainer: "{}"} {
		made, err := foreign.Convert("x", []byte(text), options(format))
		if err != nil || made.Format != format {
			t.Errorf("%s: %v", format, err)
		}
		settings(t, made)
	}
}

// FuzzConvert: whatever is read, it is an error that says where, or settings and a policy that load.
func FuzzConvert(f *testing.F) {
	f.Add(srt)
	f.Add(devContainer)
	f.Add(`{"filesystem": {"allowWrite": ["/a", "~"], "denyRead": ["/a/*", "[", "**"], "denyWrite": ["\u0000"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		made, err := foreign.Convert("f", []byte(text), options(""))
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		settings(t, made)
	})
}

// TestTheProjectIsNeverWritten: a mount that has the project, or a part of it, is read-only,
// whatever the settings say. Another one, the control, can be written to.
func TestTheProjectIsNeverWritten(t *testing.T) {
	for text, want := range map[string][]string{
		`{"filesystem": {"allowWrite": ["/srv/code", "/srv/out"]}}`: {".:/workspace", "/srv/code:/srv/code", "/srv/out:/srv/out:rw"},
		`{"image": "x", "mounts": ["type=bind,source=${localWorkspaceFolder}/.git,target=/a", "type=bind,source=/srv/code,target=/b",
			"type=bind,source=${localWorkspaceFolder}/../..,target=/c", "type=bind,source=/srv/out,target=/d"]}`: {".git:/a", "/srv/code:/b", "/srv:/c", "/srv/out:/d:rw"},
	} {
		o := options("")
		o.Dir = "/srv/code/app"
		made, err := foreign.Convert("settings.json", []byte(text), o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, settings(t, made).Mounts); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
		if n := strings.Count(strings.Join(notes(made), "\n"), "read-only, since the project is in it"); n != len(want)-1-strings.Count(text, "allowWrite") {
			t.Errorf("%d notes: %q", n, notes(made))
		}
	}
}
