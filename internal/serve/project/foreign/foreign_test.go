package foreign_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project/foreign"
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
	return foreign.Options{Format: format, Dir: "/home/me/app", Home: "/home/me"}
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
		"":                                     "settings.json:1:1: a value is missing at the end",
		"[]":                                   "settings.json:1:1: the settings have to be an object, and are a list",
		"{\n  \"a\": 1,\n  \"é\": x }":         "settings.json:3:8: \"x\" is no value",
		"{\"a\": 1} x":                         "settings.json:1:10: there is something behind the end",
		"{\"a\": 1\n\"b\": 2}":                 "settings.json:2:1: there has to be a comma or } here",
		"{\"a\" 1}":                            "settings.json:1:6: there has to be a colon",
		"{a: 1}":                               "settings.json:1:2: there has to be a key in double quotes",
		"{\"a\": 1, \"a\": 2}":                 "settings.json:1:10: the key \"a\" is on line 1 already",
		"{\"a\": \"x":                          "settings.json:1:7: this text has no end",
		"{\"a\": \"x\ny\"}":                    "settings.json:1:9: a text can't have this character",
		"{\"a\": \"\\q\"}":                     "settings.json:1:7: this text has a wrong escape",
		"{\"a\": \"\xff\"}":                    "settings.json:1:7: this text has a wrong escape",
		"{ /* x":                               "settings.json:1:3: the comment has no end",
		"{\"a\": 01}":                          "settings.json:1:7: \"01\" is no value",
		"{\"a\": \x00}":                        "settings.json:1:7: there has to be a value here",
		strings.Repeat("[", 100):               "settings.json:1:66: it is nested deeper than 64",
		`{"x": "` + strings.Repeat("a", 1<<20): "at most 1048576 are read",
		`{"x": 1}`:                             "has no key of a devcontainer.json; if it is one, say so with --from devcontainer",
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
	made := convert(t, "\ufeff// a\n{ /* b\n */ \"containerEnv\": { \"A\": \"a\\u002etest\", }, \"image\": \"x\", } // c")
	if got := settings(t, made).Environment["A"]; got != "a.test" {
		t.Errorf("A is %q", got)
	}
	made, err := foreign.Convert("x", []byte("{}"), options(foreign.DevContainer))
	if err != nil || made.Format != foreign.DevContainer {
		t.Error(err)
	}
	settings(t, made)
}

// FuzzConvert: whatever is read, it is an error that says where, or settings that load.
func FuzzConvert(f *testing.F) {
	f.Add(devContainer)
	f.Add(`{"image": "x", "mounts": ["type=bind,source=~/a,target=/b", {"type": "bind", "source": "\u0000", "target": "/"}]}`)
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

// TestReadOnlyMountsStayReadOnly: a mount that any spelling of the tool's says is read-only is mounted so, or left out.
// One that says it is not, the control, can be written to.
func TestReadOnlyMountsStayReadOnly(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		`"type=bind,source=/srv/a,target=/a,readonly"`:                                              "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,ReadOnly"`:                                              "/srv/a:/a",
		`"Type=bind,Source=/srv/a,Target=/a,RO=true"`:                                               "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,readonly=1"`:                                            "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,readonly="`:                                             "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,readonly=false,ro=true"`:                                "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,ro,readonly=false"`:                                     "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,readonly,readonly=false"`:                               "/srv/a:/a",
		`"type=bind,source=/srv/a,target=/a,\"readonly\""`:                                          "",
		`{"type": "bind", "source": "/srv/a", "target": "/a", "ReadOnly": true}`:                    "/srv/a:/a",
		`{"type": "bind", "source": "/srv/a", "target": "/a", "readonly": true, "READONLY": false}`: "/srv/a:/a",
		`"type=bind,source=/home,target=/a"`:                                                        "",
		`"type=bind,source=/srv/a,target=/a"`:                                                       "/srv/a:/a:rw",
		`"type=bind,source=/srv/a,target=/a,readonly=false,ro=0"`:                                   "/srv/a:/a:rw",
		`{"type": "bind", "source": "/srv/a", "target": "/a", "readonly": false}`:                   "/srv/a:/a:rw",
	} {
		made := convert(t, `{"image": "x", "mounts": [`+options+`]}`)
		if got := strings.Join(settings(t, made).Mounts, " "); got != want {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
		if told := strings.Contains(strings.Join(notes(made), "\n"), "left out: it "); want == "" && !told {
			t.Errorf("%s: %q", options, notes(made))
		}
	}
}

// TestTheProjectIsNeverWritten: a mount that has the project, or a part of it, is read-only,
// whatever the settings say. Another one, the control, can be written to.
func TestTheProjectIsNeverWritten(t *testing.T) {
	for text, want := range map[string][]string{
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
		if n := strings.Count(strings.Join(notes(made), "\n"), "read-only, since the project is in it"); n != len(want)-1 {
			t.Errorf("%d notes: %q", n, notes(made))
		}
	}
}
