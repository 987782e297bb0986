package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestAllThatTheDaemonRunsIsNamed: no sandbox may write what the daemon runs, whichever key of
// the configuration names it. A mount is refused by this list alone (mounts.Rules.Programs). The
// control is a tool's program, which is on it.
func TestAllThatTheDaemonRunsIsNamed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	c := Config{
		Runsc: at("runsc"), MachineMonitor: at("firecracker"),
		Audit: Audit{Publish: Publish{Command: []string{at("publish.sh")}}},
		Tools: []Tool{{Name: "control", Command: []string{at("tool")}}},
	}
	named := c.Programs()
	if !slices.Contains(named, at("tool")) {
		t.Fatal("the control is not named")
	}
	for key, file := range map[string]string{"runsc": at("runsc"), "machine_monitor": at("firecracker"), "audit.publish.command": at("publish.sh")} {
		if !slices.Contains(named, file) {
			t.Errorf("%s: a sandbox may be given the directory of %s to write to, and the daemon runs that", key, file)
		}
	}
}

// TestASecretsFileBehindAnAgentsLink: where an agent may write, it can put a link in the place
// of a secret's file or of a directory above it; the daemon must not take the secret from where that leads. The controls: the
// file itself, and a program there, which is refused.
func TestASecretsFileBehindAnAgentsLink(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	conf := filepath.Join(project, "conf")
	for name, text := range map[string]string{filepath.Join(conf, "key"): "ours", filepath.Join(elsewhere, "key"): "of-another-file-of-the-host"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(project, "print"), []byte("#!/bin/sh\necho of-a-program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := hostpath.Resolve(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := Config{Secrets: []Secret{
		{Name: "file", Hosts: []string{"api.example"}, Header: "x-key", File: filepath.Join(conf, "key")},
		{Name: "program", Hosts: []string{"api.example"}, Header: "x-key", Command: []string{filepath.Join(project, "print")}},
	}}
	all, err := c.DeclaredSecrets(func() []hostpath.Tree { return []hostpath.Tree{{Path: p.Name, ID: p.ID}} })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Source.Fetch(t.Context()); err == nil {
		t.Fatal("the control: a program that a sandbox may write was run")
	}
	// The work that is done inside, in a run that may write to the project.
	if err := os.Rename(conf, conf+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, conf); err != nil {
		t.Fatal(err)
	}
	value, err := all[0].Source.Fetch(t.Context())
	if err == nil {
		t.Errorf("the secret is taken through a link that a sandbox left, from another file of the host: %q", value.Reveal())
	}
}

// TestEveryKeyThatNamesAPlaceIsListed: a key that names a file or a program, in whatever part of the
// configuration, is among those that no sandbox may write. A new one is so named, or has its reason here.
func TestEveryKeyThatNamesAPlaceIsListed(t *testing.T) {
	t.Parallel()
	written := map[string]string{
		"audit.publish.file": "it is written to, through no link of a sandbox's", "telemetry.traces.file": "it is written to",
		"secrets.vault.path": "it is a name on a server",
	}
	places := regexp.MustCompile(`(^|_)(file|path|dir|directory|command|runsc|monitor|kernel|socket|CertFile|KeyFile)$`)
	seen := 0
	var look func(typ reflect.Type, key string, set func(c *Config, value reflect.Value))
	look = func(typ reflect.Type, key string, set func(c *Config, value reflect.Value)) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if name == "" {
				name = field.Name
			}
			at := strings.TrimPrefix(key+"."+name, ".")
			put := func(c *Config, value reflect.Value) {
				owner := reflect.New(typ).Elem()
				owner.Field(i).Set(value)
				set(c, owner)
			}
			inner := field.Type
			switch {
			case inner.Kind() == reflect.Struct:
				look(inner, at, put)
			case inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct:
				look(inner.Elem(), at, func(c *Config, value reflect.Value) {
					to := reflect.New(inner.Elem())
					to.Elem().Set(value)
					put(c, to)
				})
			case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
				look(inner.Elem(), at, func(c *Config, value reflect.Value) {
					put(c, reflect.Append(reflect.MakeSlice(inner, 0, 1), value))
				})
			case places.MatchString(name) && written[strings.Replace(at, ".oauth.client_secret", "", 1)] == "":
				var c Config
				switch inner.Kind() {
				case reflect.String:
					put(&c, reflect.ValueOf("/place/of/it"))
				case reflect.Slice:
					put(&c, reflect.ValueOf([]string{"/place/of/it"}))
				default:
					continue
				}
				if seen++; !slices.Contains(c.HostFiles(Paths{State: "/state"}), "/place/of/it") {
					t.Errorf("%s: a sandbox may be given the directory of what it names", at)
				}
			}
		}
	}
	look(reflect.TypeFor[Config](), "", func(c *Config, value reflect.Value) { reflect.ValueOf(c).Elem().Set(value) })
	if seen < 15 {
		t.Errorf("only %d keys were looked at", seen)
	}
}

// TestToolHomes: a home is one that a tool has by its variable, and in which it is not run.
func TestToolHomes(t *testing.T) {
	t.Parallel()
	c := Config{Tools: []Tool{
		{Environment: map[string]string{"HOME": "/home/user", "JAVA_HOME": "/opt/java"}},
		{Environment: map[string]string{"HOME": "/srv/tool"}, Directory: "/srv/tool"},
	}}
	if got := c.ToolHomes(); !slices.Equal(got, []string{"/home/user"}) {
		t.Errorf("%q", got)
	}
}
