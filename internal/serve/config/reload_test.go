package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEachKeyIsReloadedOrWaits: every key of the configuration is in exactly one of the two lists, and nothing else is.
func TestEachKeyIsReloadedOrWaits(t *testing.T) {
	t.Parallel()
	var keys []string
	eachKey(reflect.ValueOf(Config{}), reflect.ValueOf(Config{}), "", func(key string, _, _ reflect.Value) { keys = append(keys, key) })
	listed := slices.Concat(Reloaded(), AtStart())
	slices.Sort(keys)
	slices.Sort(listed)
	if diff := cmp.Diff(keys, listed); diff != "" {
		t.Errorf("put each key into one of Reloaded and AtStart:\n%s", diff)
	}
}

// TestTake: what can be taken is, and the rest is told and stays as it was.
func TestTake(t *testing.T) {
	t.Parallel()
	was := Config{DefaultTemplate: "host", Log: Log{Level: "info", Format: "text"}, Pool: []Pool{{Size: 1}}, Overcommit: Overcommit{CPU: 2}}.withDefaults()
	now := was
	if _, change := was.Take(now); change.Reloaded != nil || change.AtStart != nil {
		t.Errorf("nothing has changed: %+v", change)
	}
	now.DefaultTemplate, now.Log, now.Pool, now.Overcommit.CPU, now.IdleTimeout = "debian", Log{Level: "debug", Format: "json"}, nil, 3, Duration(time.Hour)
	taken, change := was.Take(now)
	if diff := cmp.Diff(Change{Reloaded: []string{"idle_timeout", "overcommit", "pool", "log.level"}, AtStart: []string{"default_template", "log.format"}}, change); diff != "" {
		t.Error(diff)
	}
	want := now
	want.DefaultTemplate, want.Log.Format = "host", "text"
	if diff := cmp.Diff(want, taken); diff != "" {
		t.Error(diff)
	}
	if was.Log.Level != "info" || len(was.Pool) != 1 {
		t.Errorf("the old configuration has changed: %+v", was)
	}
}

// TestWhichFileCounts: a named one, else that of the state directory, else the machine's; never one of two.
func TestWhichFileCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there []string // of own, machine, named
		named bool
		want  string // the template that it names, or words of the refusal
	}{
		"none":                {nil, false, "auto"},
		"the state's":         {[]string{"own"}, false, "own"},
		"the machine's":       {[]string{"machine"}, false, "machine"},
		"both":                {[]string{"own", "machine"}, false, "there are two configuration files"},
		"a named one":         {[]string{"own", "machine", "named"}, true, "named"},
		"a named one is gone": {[]string{"own"}, true, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := Paths{State: filepath.Join(dir, "own"), Machine: filepath.Join(dir, "machine", "config.yaml")}
			if c.named {
				p.Config = filepath.Join(dir, "named", "config.yaml")
			}
			for _, at := range []string{"own", "machine", "named"} {
				if err := os.Mkdir(filepath.Join(dir, at), 0o700); err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(c.there, at) {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, at, "config.yaml"), []byte("default_template: "+at+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, from, err := p.Load()
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if got.DefaultTemplate != c.want || (from.SHA256 == "") != (c.there == nil) || from.Path != p.File() {
				t.Errorf("%s of %+v, want %s", got.DefaultTemplate, from, c.want)
			}
		})
	}
}

// TestTheMachinesFileIsJudgedAsTheStates: others must not decide what it says.
func TestTheMachinesFileIsJudgedAsTheStates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Paths{State: filepath.Join(dir, "state"), Machine: filepath.Join(dir, "etc", "config.yaml")}
	if err := os.Mkdir(filepath.Dir(p.Machine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Machine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Load(); err != nil {
		t.Errorf("it is right: %v", err)
	}
	if err := os.Chmod(p.Machine, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Load(); err == nil {
		t.Error("others may write it, and it is taken")
	}
}
